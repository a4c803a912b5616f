"""Fields of config.json that change the computation."""

#: Configuration fields that change the computation, each with the values that our backbones
#: support. BERT's own fields come first, then fields of models that call themselves BERT. (Other
#: fields, such as `use_cache`, `output_attentions` and `chunk_size_feed_forward`, change the
#: outputs that are returned, the speed or the dropout, but no value of an output.)
DIALS: tuple[tuple[str, tuple], ...] = (
    ("position_embedding_type", ("absolute",)),
    ("is_decoder", (False,)),
    ("add_cross_attention", (False,)),
    ("pruned_heads", ({},)),
    ("quantization_config", ()),
    ("num_hidden_groups", ()),
    ("inner_group_num", (1,)),
    ("feed_forward_type", ("original",)),
    ("alibi_starting_size", ()),
    ("rotary_emb_fraction", (0, 0.0)),
    ("relative_attention", (False,)),
    ("prenorm", (False,)),
    ("ln_type", ("postln",)),
    # fields of the code of StructBERT
    ("attention_type", ("self",)),
    ("transition_function", ("linear",)),
    ("pre_ln", (False,)),
    ("rezero", (False,)),
    ("squeeze_excitation", (False,)),
    ("roberta_style", (False,)),
    ("set_mask_zero", (False,)),
    ("emb_size", (-1,)),
)

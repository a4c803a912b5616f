"""How many of the training texts a maximum length cuts, and which length cuts few."""

#: More texts would not change the advice.
SAMPLE = 10_000


def report_cut_texts(task, train, data):
    """Prints how many texts of `Examples` a task cuts, if any, and which flags cut fewer."""
    packer = task.preprocessor
    columns = train.x if isinstance(train.x, tuple) else (train.x,)
    advice = packer.suggest_sequence_length(*(column[:SAMPLE] for column in columns))
    length, most = packer.sequence_length, getattr(task.backbone, "max_sequence_length", None)
    if not advice.cut_rows[length]:
        return
    advised = min(advice.sequence_length, most or advice.sequence_length)
    remedies = [f"--sequence_length {advised} cuts fewer"] if advised > length else []
    if "truncation" in data.own_flags and packer.truncation != "head_tail":
        remedies.append("--truncation head_tail keeps both ends")
    if "window_pooling" in data.own_flags:
        remedies.append("--window_pooling reads all")
    print(
        f"{advice.cut_rows[length]:.1%} of the training texts have more than {length} tokens and "
        f"are cut{': ' * bool(remedies)}{', '.join(remedies)}"
    )

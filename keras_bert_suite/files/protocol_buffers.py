"""Messages of protocol buffers, without a compiler or the library that they belong to."""


def make_message_classes(messages):
    """The classes of messages, dict of name -> class.

    `messages` is a dict of name -> the fields as a .proto file has them, such as
    "repeated float value = 1; string key = 2". A message stands after the messages in it.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="messages.proto", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for text in fields.split(";"):
            *repeated, kind, field_name, _, number = text.split()
            field = message.field.add(name=field_name, number=int(number))
            field.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if kind in messages:
                field.type, field.type_name = kinds.TYPE_MESSAGE, kind
            else:
                field.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in messages
    }

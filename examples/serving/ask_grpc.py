"""Asks TensorFlow Serving about texts over gRPC.

    python examples/serving/ask_grpc.py "A gripping, funny film." "The battery died."

Needs tensorflow-serving-api, which keras-bert-suite brings along.
"""

import argparse
import sys

import grpc
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc


def ask(stub, texts, model="sentiment", timeout=10):
    """Returns the label of each text and its probability, as a list of pairs."""
    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = "serving_default"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    outputs = stub.Predict(request, timeout=timeout).outputs
    labels = [label.decode() for label in tf.make_ndarray(outputs["labels"])]
    probabilities = tf.make_ndarray(outputs["probabilities"]).max(axis=-1)
    return list(zip(labels, probabilities.tolist(), strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--server", default="localhost:8500")
    parser.add_argument("--model", default="sentiment")
    flags = parser.parse_args()
    with grpc.insecure_channel(flags.server) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        try:
            answers = ask(stub, flags.texts, flags.model)
        except grpc.RpcError as error:
            if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                sys.exit(f"No server answers at {flags.server}. README.md says how to start one.")
            sys.exit(f"{flags.server} refuses the request: {error.details()}")
    for text, (label, probability) in zip(flags.texts, answers, strict=True):
        print(f"{label} {probability:.3f}  {text}")


if __name__ == "__main__":
    main()

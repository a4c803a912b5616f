/* Runs a SavedModel as TensorFlow Serving does: TensorFlow's library, the op libraries of
 * TensorFlow Text, a session, tensors fed and fetched by name. No Python.
 *
 *   run_saved_model SAVED_MODEL OP_LIBRARY... < requests > answers
 *
 * Requests are read to the end of the input; a request is
 *   u32 number of feeds, each: name, tensor; u32 number of fetches, each: name
 * and its answer is
 *   u32 code (TF_Code); if that is TF_OK, the tensors fetched; if not, the message.
 * On the wire, in the machine's byte order:
 *   name, string, message  u32 length, bytes
 *   tensor                 u32 dtype (TF_DataType), u32 rank, i64 dimensions, elements
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

enum { MAX_TENSORS = 16, MAX_RANK = 8, MAX_NAME = 1024 };

static TF_Status* status;

static void fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void check(const char* what) {
  if (TF_GetCode(status) != TF_OK) fail(what, TF_Message(status));
}

static void read_bytes(void* to, size_t size) {
  if (size && fread(to, 1, size, stdin) != size) fail("read", "the request is cut short");
}

static void write_bytes(const void* from, size_t size) {
  if (size && fwrite(from, 1, size, stdout) != size) fail("write", "the answer is cut short");
}

static uint32_t read_count(void) {
  uint32_t count;
  read_bytes(&count, sizeof count);
  return count;
}

static void write_count(uint32_t count) { write_bytes(&count, sizeof count); }

static void write_string(const char* bytes, size_t length) {
  write_count(length);
  write_bytes(bytes, length);
}

static size_t element_count(const int64_t* dims, uint32_t rank) {
  size_t count = 1;
  for (uint32_t i = 0; i < rank; i++) count *= dims[i];
  return count;
}

static void free_strings(void* data, size_t size, void* unused) {
  (void)unused;
  for (size_t i = 0; i < size / sizeof(TF_TString); i++) TF_TString_Dealloc((TF_TString*)data + i);
  free(data);
}

static TF_Tensor* read_tensor(void) {
  TF_DataType dtype = read_count();
  uint32_t rank = read_count();
  int64_t dims[MAX_RANK];
  if (rank > MAX_RANK) fail("read", "the rank is too high");
  read_bytes(dims, rank * sizeof *dims);
  size_t count = element_count(dims, rank);
  if (dtype != TF_STRING) {
    TF_Tensor* tensor = TF_AllocateTensor(dtype, dims, rank, count * TF_DataTypeSize(dtype));
    read_bytes(TF_TensorData(tensor), TF_TensorByteSize(tensor));
    return tensor;
  }
  TF_TString* strings = malloc(count * sizeof *strings + 1);
  for (size_t i = 0; i < count; i++) {
    uint32_t length = read_count();
    char* bytes = malloc(length + 1);
    read_bytes(bytes, length);
    TF_TString_Init(strings + i);
    TF_TString_Copy(strings + i, bytes, length);
    free(bytes);
  }
  return TF_NewTensor(TF_STRING, dims, rank, strings, count * sizeof *strings, free_strings, NULL);
}

static void write_tensor(const TF_Tensor* tensor) {
  uint32_t rank = TF_NumDims(tensor);
  int64_t dims[MAX_RANK];
  for (uint32_t i = 0; i < rank; i++) dims[i] = TF_Dim(tensor, i);
  write_count(TF_TensorType(tensor));
  write_count(rank);
  write_bytes(dims, rank * sizeof *dims);
  if (TF_TensorType(tensor) != TF_STRING) {
    write_bytes(TF_TensorData(tensor), TF_TensorByteSize(tensor));
    return;
  }
  const TF_TString* strings = TF_TensorData(tensor);
  for (size_t i = 0; i < element_count(dims, rank); i++) {
    write_string(TF_TString_GetDataPointer(strings + i), TF_TString_GetSize(strings + i));
  }
}

/* "serving_default_text:0" -> output 0 of that operation. */
static TF_Output read_name(TF_Graph* graph) {
  char name[MAX_NAME];
  uint32_t length = read_count();
  if (length >= MAX_NAME) fail("read", "the name is too long");
  read_bytes(name, length);
  name[length] = '\0';
  char* colon = strrchr(name, ':');
  if (!colon) fail(name, "wanted NAME:INDEX");
  *colon = '\0';
  TF_Output output = {TF_GraphOperationByName(graph, name), atoi(colon + 1)};
  if (!output.oper) fail(name, "the graph has no such operation");
  return output;
}

static void answer(TF_Session* session, TF_Graph* graph, uint32_t feed_count) {
  TF_Output feeds[MAX_TENSORS], fetches[MAX_TENSORS];
  TF_Tensor *inputs[MAX_TENSORS], *outputs[MAX_TENSORS];
  if (feed_count > MAX_TENSORS) fail("read", "too many feeds");
  for (uint32_t i = 0; i < feed_count; i++) {
    feeds[i] = read_name(graph);
    inputs[i] = read_tensor();
  }
  uint32_t fetch_count = read_count();
  if (fetch_count > MAX_TENSORS) fail("read", "too many fetches");
  for (uint32_t i = 0; i < fetch_count; i++) fetches[i] = read_name(graph);
  TF_SessionRun(session, NULL, feeds, inputs, feed_count, fetches, outputs, fetch_count, NULL, 0,
                NULL, status);
  for (uint32_t i = 0; i < feed_count; i++) TF_DeleteTensor(inputs[i]);
  write_count(TF_GetCode(status));
  if (TF_GetCode(status) != TF_OK) {
    write_string(TF_Message(status), strlen(TF_Message(status)));
    return;
  }
  for (uint32_t i = 0; i < fetch_count; i++) {
    write_tensor(outputs[i]);
    TF_DeleteTensor(outputs[i]);
  }
}

int main(int argc, char** argv) {
  if (argc < 2) fail("usage", "run_saved_model SAVED_MODEL OP_LIBRARY...");
  status = TF_NewStatus();
  for (int i = 2; i < argc; i++) {
    TF_LoadLibrary(argv[i], status);
    check(argv[i]);
  }
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tags[] = {"serve"};
  TF_Session* session =
      TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
  check(argv[1]);
  uint32_t feed_count;
  while (fread(&feed_count, sizeof feed_count, 1, stdin) == 1) answer(session, graph, feed_count);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}

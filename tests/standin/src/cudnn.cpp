// A stand-in for libcudnn.so.9: its version, which torch compares with the one that it was built with.
// All else is refused by generated stubs.
#include <cstddef>

#define API extern "C" __attribute__((visibility("default")))

API size_t cudnnGetVersion() { return CUDNN_VERSION; }
API int cudnnGetProperty(int part, int* value) {  // 0 major, 1 minor, 2 patch
  *value = part == 0 ? CUDNN_VERSION / 10000 : part == 1 ? CUDNN_VERSION / 100 % 100 : CUDNN_VERSION % 100;
  return 0;
}

// The machine that the stand-in libraries show: the scenario file of tests/nvml ($FAKE_NVML), read
// once in a process. One file describes a machine to NVML, CUDA and NCCL alike.
//
// Keys of its own, beside those of tests/nvml/fakenvml.py; FN is a function that a library exports
// (`cudaMalloc`, `ncclAllReduce`), GPU an index as NVML counts them:
//
//   fail.FN, fail.FN@GPU      the error code that the call returns
//   after.FN, after.FN@GPU    calls of a process (or of the GPU in it) that succeed before that
//   hang.FN, hang.FN@GPU      seconds that the call takes
//   slow_ms.FN, slow_ms.FN@GPU
//   corrupt.FN@GPU            the call's result is wrong (collectives only)
//   unless.FN, unless.FN@GPU  NAME=VALUE: none of these where the process has that variable
//   gpus.N.multiprocessors    streaming multiprocessors
//   cuda_context_bytes        what a context takes of a GPU's memory (default 512 MiB)
//   cuda_log                  a file to which each call that may be injected is appended
//
// A `*` in place of FN is NVML's alone: its codes mean other things to CUDA.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace standin {

inline const std::map<std::string, std::string>& scenario() {
  static const auto* const entries = [] {
    auto* found = new std::map<std::string, std::string>;
    const char* path = getenv("FAKE_NVML");
    FILE* file = path ? fopen(path, "r") : nullptr;
    if (!file) {
      fprintf(stderr, "standin: cannot read $FAKE_NVML (%s)\n", path ? path : "not set");
      abort();
    }
    char* line = nullptr;
    size_t room = 0;
    for (ssize_t size; (size = getline(&line, &room, file)) > 0;) {
      std::string text(line, line[size - 1] == '\n' ? size - 1 : size);
      const size_t equals = text.find('=');
      if (equals != std::string::npos) (*found)[text.substr(0, equals)] = text.substr(equals + 1);
    }
    free(line);
    fclose(file);
    return found;
  }();
  return *entries;
}

inline const char* look(const char* format, ...) __attribute__((format(printf, 1, 2)));
inline const char* look(const char* format, ...) {
  char key[256];
  va_list args;
  va_start(args, format);
  vsnprintf(key, sizeof key, format, args);
  va_end(args);
  const auto found = scenario().find(key);
  return found == scenario().end() ? nullptr : found->second.c_str();
}

inline uint64_t number(const char* text, uint64_t otherwise) {
  return text ? strtoull(text, nullptr, 0) : otherwise;
}

inline int gpu_count() { return (int)number(look("gpus.#"), 0); }

// The text after `verb.FN@GPU`, else after `verb.FN`.
inline const char* rule(const char* verb, const char* function, int gpu) {
  const char* value = gpu >= 0 ? look("%s.%s@%d", verb, function, gpu) : nullptr;
  return value ? value : look("%s.%s", verb, function);
}

// Whether a variable of the process keeps the faults of a call away, as a setting of NCCL does with a
// transport that is broken.
inline bool spared(const char* function, int gpu) {
  const char* pair = rule("unless", function, gpu);
  const char* equals = pair ? strchr(pair, '=') : nullptr;
  if (!equals) return false;
  const char* value = getenv(std::string(pair, equals).c_str());
  return value && !strcmp(value, equals + 1);
}

inline void wait_for(double seconds) {
  usleep((useconds_t)((seconds - (long)seconds) * 1e6));
  for (long left = (long)seconds; left > 0; left--) sleep(1);
}

// What every call does first: is logged, is late, hangs, fails. Returns the code to fail with, or 0.
inline int injected(const char* function, int gpu) {
  if (const char* path = look("cuda_log")) {
    const std::string line = std::string(function) + (gpu < 0 ? "" : " " + std::to_string(gpu)) + "\n";
    const int log = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0 || write(log, line.data(), line.size()) != (ssize_t)line.size()) abort();
    close(log);
  }
  const char* slow = rule("slow_ms", function, gpu);
  const char* hang = rule("hang", function, gpu);
  const char* fail = rule("fail", function, gpu);
  if ((!slow && !hang && !fail) || spared(function, gpu)) return 0;
  if (const char* after = rule("after", function, gpu)) {
    static std::mutex guard;
    static auto* const calls = new std::map<std::string, uint64_t>;
    const std::lock_guard<std::mutex> held(guard);
    if ((*calls)[std::string(function) + "@" + std::to_string(gpu)]++ < number(after, 0)) return 0;
  }
  if (slow) wait_for(atof(slow) / 1000);
  if (hang) wait_for(atof(hang));
  return fail ? atoi(fail) : 0;
}

// The GPUs that CUDA_VISIBLE_DEVICES leaves, as NVML counts them: the first entry that names no GPU
// ends the list, and a GPU named twice empties it (CUDA C++ Programming Guide, environment variables).
inline const std::vector<int>& visible() {
  static const auto* const found = [] {
    auto* list = new std::vector<int>;
    const char* variable = getenv("CUDA_VISIBLE_DEVICES");
    if (!variable) {
      for (int gpu = 0; gpu < gpu_count(); gpu++) list->push_back(gpu);
      return list;
    }
    std::string rest(variable);
    while (!rest.empty()) {
      std::string entry = rest.substr(0, rest.find(','));
      rest.erase(0, entry.size() + 1);
      entry.erase(0, entry.find_first_not_of(' '));
      char* end = nullptr;
      int gpu = (int)strtol(entry.c_str(), &end, 10);
      if (entry.rfind("GPU-", 0) == 0) {
        int matches = 0;
        for (int i = 0; i < gpu_count(); i++) {
          const char* uuid = look("gpus.%d.uuid", i);
          if (uuid && !strncmp(uuid, entry.c_str(), entry.size())) gpu = i, matches++;
        }
        if (matches != 1) break;
      } else if (end == entry.c_str() || gpu < 0 || gpu >= gpu_count()) {
        break;
      }
      for (const int other : *list) {
        if (other == gpu) {
          list->clear();
          return list;
        }
      }
      list->push_back(gpu);
    }
    return list;
  }();
  return *found;
}

// Sixteen bytes of "GPU-8cd1bd4f-…".
inline void put_uuid(int gpu, char* out) {
  const char* text = look("gpus.%d.uuid", gpu);
  memset(out, 0, 16);
  int half = 0;
  for (text = text && strlen(text) > 4 ? text + 4 : ""; *text && half < 32; text++) {
    if (*text == '-') continue;
    const char digit[2] = {*text, 0};
    out[half / 2] = (char)(out[half / 2] << 4 | (int)strtol(digit, nullptr, 16));
    half++;
  }
}

inline void put_bus_id(int gpu, char* out, int size) {
  unsigned domain = 0, bus = 0, device = 0;
  const char* text = look("gpus.%d.pci_bus_id", gpu);
  if (text) sscanf(text, "%x:%x:%x", &domain, &bus, &device);
  snprintf(out, (size_t)size, "%04X:%02X:%02X.0", domain, bus, device);
}

}  // namespace standin

// A stand-in for libnccl.so.2 (the API of NCCL 2.27): collectives between processes of one host
// through a file in /dev/shm, over "device" pointers that are host memory.
//
// It stands for: communicators and splits of them, collectives and point-to-point calls with the
// sums of every data type, the refusal of two ranks on one GPU, waiting for ever for a rank that
// does not come, aborts, error codes with their texts and `ncclGetLastError`.
// It does not stand for: transports, topology, several hosts, calls that run in the background
// (each returns when its work is done, so a hang is in the call and not in the watchdog's event).
//
// Faults come from the scenario by function and GPU: `fail.ncclAllReduce@1=3`, with `after.` for
// the calls before it, `hang.`, `slow_ms.`, `corrupt.ncclAllReduce@1=1`. `STANDIN_NCCL_SOLO=1`:
// nobody else exists, collectives return at once (the memory of one rank of N).
#include "scenario.h"

#include <algorithm>
#include <atomic>
#include <sched.h>
#include <sys/mman.h>

#define API extern "C" __attribute__((visibility("default")))

typedef int Result;  // ncclResult_t
enum { Ok = 0, CudaError = 1, SystemError = 2, Internal = 3, InvalidArgument = 4, InvalidUsage = 5 };
struct Id { char internal[128]; };
typedef void* Stream;

extern "C" int cudaGetDevice(int*) __attribute__((weak));
extern "C" int cudaMalloc(void**, size_t) __attribute__((weak));
extern "C" int cudaFree(void*) __attribute__((weak));

namespace {
constexpr size_t SLOT = 4 << 20, BOX = 256 << 10;
constexpr int MAX_RANKS = 64;
struct Head { std::atomic<uint32_t> count, sense; std::atomic<int> gpu[MAX_RANKS]; };
struct Box { std::atomic<uint32_t> full; uint32_t bytes; char data[BOX]; };  // from one rank to another

thread_local std::string last_error;

size_t width(int type) {  // ncclDataType_t
  static const size_t widths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? widths[type] : 0;
}
bool solo() {
  static const bool on = getenv("STANDIN_NCCL_SOLO") != nullptr;
  return on;
}
// In meta mode nothing lies in big buffers (operators.cpp), so nothing is moved.
bool empty_buffer(size_t bytes) {
  static const size_t from = [] {
    const char* mode = getenv("STANDIN_MODE");
    const char* text = getenv("STANDIN_META_BYTES");
    return mode && !strcmp(mode, "meta") ? (text ? (size_t)atoll(text) : (size_t)2 << 20) : SIZE_MAX;
  }();
  return bytes >= from;
}
}  // namespace

struct ncclComm {
  ncclComm(int rank, int size, int gpu, const std::string& id) : rank(rank), size(size), gpu(gpu), id(id) {}

  const int rank, size, gpu;
  const std::string id;
  Head* head = nullptr;
  char* slots = nullptr;
  Box* boxes = nullptr;
  size_t mapped = 0;
  uint32_t sense = 0;
  int splits = 0;
  std::atomic<bool> aborted{false};
  std::vector<float> factors;  // of ncclRedOpCreatePreMulSum

  char* slot(int of) { return slots + (size_t)of * SLOT; }
  char* mine() { return slot(rank); }
  Box& box(int from, int to) { return boxes[(size_t)from * (size_t)size + (size_t)to]; }
  bool alone() const { return size == 1 || solo(); }
};
typedef ncclComm* Comm;

namespace {
void nap(int& spins) {
  if (++spins < 200) sched_yield();
  else usleep(spins < 5000 ? 50 : 1000);
}
bool barrier(Comm c) {
  if (c->alone()) return true;
  c->sense ^= 1;
  if (c->head->count.fetch_add(1) + 1 == (uint32_t)c->size) {
    c->head->count = 0;
    c->head->sense.store(c->sense);
    return true;
  }
  for (int spins = 0; c->head->sense.load() != c->sense; nap(spins)) {
    if (!c->aborted) continue;
    last_error = "aborted";
    return false;
  }
  return true;
}
Result meet(Comm c) { return barrier(c) ? Ok : Internal; }

// A fault of the scenario; a call that hangs can be aborted.
Result entered(const char* function, Comm c) {
  const Result code = standin::injected(function, c->gpu);
  if (code) last_error = std::string("injected into ") + function;
  return c->aborted ? (Result)Internal : code;
}
bool corrupt(const char* function, Comm c) {
  return standin::rule("corrupt", function, c->gpu) && !standin::spared(function, c->gpu);
}

// ---- reductions -------------------------------------------------------------------------------------
float from_half(uint16_t bits) { _Float16 value; memcpy(&value, &bits, 2); return (float)value; }
uint16_t to_half(float value) { const _Float16 half = (_Float16)value; uint16_t bits; memcpy(&bits, &half, 2); return bits; }
float from_bfloat(uint16_t bits) { const uint32_t wide = (uint32_t)bits << 16; float value; memcpy(&value, &wide, 4); return value; }
uint16_t to_bfloat(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fc0;  // not a number
  return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

struct Operation { int kind; float factor; };  // ncclRedOp_t: 0 sum, 1 product, 2 maximum, 3 minimum, 4 average, 5… ours
template <class Stored, class Sum, class Read, class Write>
void fold(Comm c, char* out, size_t count, Operation op, Read read, Write write) {
  for (size_t i = 0; i < count; i++) {
    Sum sum{};
    for (int rank = 0; rank < c->size; rank++) {
      Stored stored;
      memcpy(&stored, c->slot(rank) + i * sizeof(Stored), sizeof(Stored));
      const Sum value = read(stored);
      sum = rank == 0 ? value : op.kind == 1 ? sum * value : op.kind == 2 ? std::max(sum, value) : op.kind == 3 ? std::min(sum, value) : sum + value;
    }
    if (op.kind == 4) sum = sum / (Sum)c->size;
    if (op.kind > 4) sum = (Sum)((float)sum * op.factor);
    const Stored result = write(sum);
    memcpy(out + i * sizeof(Stored), &result, sizeof(Stored));
  }
}
template <class Stored, class Sum> void fold_plain(Comm c, char* out, size_t count, Operation op) {
  fold<Stored, Sum>(c, out, count, op, [](Stored v) { return (Sum)v; }, [](Sum v) { return (Stored)v; });
}
void reduce(Comm c, char* out, size_t count, int type, int op) {
  const size_t own = op > 4 ? (size_t)(op - 5) : SIZE_MAX;
  const Operation operation{op, own < c->factors.size() ? c->factors[own] : 1};
  switch (type) {
    case 0: return fold_plain<int8_t, int64_t>(c, out, count, operation);
    case 1: return fold_plain<uint8_t, uint64_t>(c, out, count, operation);
    case 2: return fold_plain<int32_t, int64_t>(c, out, count, operation);
    case 3: return fold_plain<uint32_t, uint64_t>(c, out, count, operation);
    case 4: return fold_plain<int64_t, int64_t>(c, out, count, operation);
    case 5: return fold_plain<uint64_t, uint64_t>(c, out, count, operation);
    case 6: return fold<uint16_t, float>(c, out, count, operation, from_half, to_half);
    case 7: return fold_plain<float, float>(c, out, count, operation);
    case 8: return fold_plain<double, double>(c, out, count, operation);
    case 9: return fold<uint16_t, float>(c, out, count, operation, from_bfloat, to_bfloat);
  }
}

// ---- point to point: calls wait for the end of their group ---------------------------------------------
struct Transfer { Comm comm; bool send; char* place; size_t bytes; int peer; size_t done; };
thread_local int depth = 0;
thread_local std::vector<Transfer> pending;

void to_oneself(std::vector<Transfer>& all) {
  for (Transfer& from : all) {
    if (!from.send || from.peer != from.comm->rank) continue;
    for (Transfer& to : all) {
      if (to.send || to.peer != to.comm->rank || to.comm != from.comm || to.done || to.bytes != from.bytes) continue;
      memmove(to.place, from.place, from.bytes);
      to.done = from.done = from.bytes;
      break;
    }
  }
}
// Moves one piece through the box of a pair; true where one was moved.
bool advance(Transfer& t) {
  Box& box = t.send ? t.comm->box(t.comm->rank, t.peer) : t.comm->box(t.peer, t.comm->rank);
  if (t.send == (box.full.load() != 0)) return false;
  if (t.send) {
    box.bytes = (uint32_t)std::min(BOX, t.bytes - t.done);
    memcpy(box.data, t.place + t.done, box.bytes);
  } else {
    memcpy(t.place + t.done, box.data, std::min((size_t)box.bytes, t.bytes - t.done));
  }
  t.done += std::min((size_t)box.bytes, t.bytes - t.done);
  box.full.store(t.send ? 1 : 0);
  return true;
}
Result flush() {
  std::vector<Transfer> all;
  all.swap(pending);
  to_oneself(all);
  int spins = 0;
  for (bool busy = true; busy; nap(spins)) {
    busy = false;
    for (size_t i = 0; i < all.size(); i++) {
      Transfer& transfer = all[i];
      if (transfer.done >= transfer.bytes || solo()) continue;
      busy = true;
      if (transfer.comm->aborted) return Internal;
      bool earlier = false;  // those between the same ranks go in order
      for (size_t j = 0; j < i; j++)
        earlier = earlier || (all[j].done < all[j].bytes && all[j].peer == transfer.peer && all[j].send == transfer.send && all[j].comm == transfer.comm);
      if (!earlier && advance(transfer)) spins = 0;
    }
  }
  return Ok;
}
Result transfer(Comm c, bool send, const void* place, size_t bytes, int peer) {
  if (const Result code = entered(send ? "ncclSend" : "ncclRecv", c)) return code;
  pending.push_back({c, send, (char*)place, bytes, peer, 0});
  return depth ? (Result)Ok : flush();
}

// ---- communicators ------------------------------------------------------------------------------------
Result make(Comm* out, int size, const std::string& id, int rank, const char* function) {
  if (size > MAX_RANKS || rank < 0 || rank >= size) {
    last_error = "too many ranks for the stand-in";
    return InvalidArgument;
  }
  int device = 0;
  if (cudaGetDevice) cudaGetDevice(&device);
  const auto& gpus = standin::visible();
  auto* c = new ncclComm(rank, size, device < (int)gpus.size() ? gpus[(size_t)device] : device, id);
  if (const Result code = entered(function, c)) return code;
  *out = c;
  if (c->alone()) return Ok;
  c->mapped = sizeof(Head) + (size_t)size * SLOT + (size_t)size * (size_t)size * sizeof(Box);
  const std::string path = "/dev/shm/nccl-standin-" + id;
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, (off_t)c->mapped)) {
    last_error = "Error while creating shared memory segment " + path;
    return SystemError;
  }
  void* place = mmap(nullptr, c->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (place == MAP_FAILED) return SystemError;
  c->head = (Head*)place;
  c->slots = (char*)place + sizeof(Head);
  c->boxes = (Box*)(c->slots + (size_t)size * SLOT);
  c->head->gpu[rank] = c->gpu + 1;
  if (!barrier(c)) return Internal;
  if (rank == 0) unlink(path.c_str());
  for (int other = 0; other < size; other++) {
    if (other == rank || c->head->gpu[other] != c->head->gpu[rank]) continue;
    char bus[32], text[160];
    standin::put_bus_id(c->gpu, bus, sizeof bus);
    snprintf(text, sizeof text, "Duplicate GPU detected : rank %d and rank %d both on CUDA device %.2s000", rank, other, bus + 5);
    last_error = text;
    return InvalidUsage;
  }
  return meet(c);
}
}  // namespace

API Result ncclGetVersion(int* version) { *version = (int)standin::number(standin::look("nccl"), NCCL_VERSION); return Ok; }
API Result ncclGetUniqueId(Id* id) {
  memset(id, 0, sizeof *id);
  unsigned char random[12];
  const int source = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const bool read_all = source >= 0 && read(source, random, sizeof random) == (ssize_t)sizeof random;
  if (source >= 0) close(source);
  if (!read_all) return SystemError;
  for (size_t i = 0; i < sizeof random; i++) snprintf(id->internal + 2 * i, 3, "%02x", random[i]);
  return Ok;
}
API Result ncclCommInitRank(Comm* c, int size, Id id, int rank) {
  return make(c, size, std::string(id.internal, strnlen(id.internal, 64)), rank, "ncclCommInitRank");
}
API Result ncclCommInitRankConfig(Comm* c, int size, Id id, int rank, void*) { return ncclCommInitRank(c, size, id, rank); }
API Result ncclCommInitRankScalable(Comm* c, int size, int rank, int, Id* id, void*) { return ncclCommInitRank(c, size, id[0], rank); }
API Result ncclCommInitAll(Comm*, int, const int*) { last_error = "not in the stand-in"; return InvalidUsage; }
API Result ncclCommSplit(Comm c, int color, int key, Comm* out, void*) {
  std::vector<int> all(2 * (size_t)c->size);
  if (c->alone()) {
    for (int rank = 0; rank < c->size; rank++) all[2 * (size_t)rank] = color, all[2 * (size_t)rank + 1] = rank;
  } else {
    const int mine[2] = {color, key};
    memcpy(c->mine(), mine, sizeof mine);
    if (!barrier(c)) return Internal;
    for (int rank = 0; rank < c->size; rank++) memcpy(&all[2 * (size_t)rank], c->slot(rank), sizeof mine);
    if (!barrier(c)) return Internal;
  }
  const int serial = c->splits++;
  *out = nullptr;
  if (color < 0) return Ok;
  std::vector<std::pair<int, int>> members;
  for (int rank = 0; rank < c->size; rank++)
    if (all[2 * (size_t)rank] == color) members.push_back({all[2 * (size_t)rank + 1], rank});
  std::stable_sort(members.begin(), members.end());
  int rank = 0;
  for (size_t i = 0; i < members.size(); i++)
    if (members[i].second == c->rank) rank = (int)i;
  return make(out, (int)members.size(), c->id + "-" + std::to_string(serial) + "-" + std::to_string(color), rank, "ncclCommSplit");
}
API Result ncclCommShrink(Comm, int*, int, Comm*, void*, int) { last_error = "not in the stand-in"; return InvalidUsage; }
API Result ncclCommFinalize(Comm) { return Ok; }
API Result ncclCommDestroy(Comm c) {
  if (c->head) munmap(c->head, c->mapped);
  delete c;
  return Ok;
}
API Result ncclCommAbort(Comm c) { c->aborted = true; return Ok; }  // not freed: another thread may still be in it
API Result ncclCommGetAsyncError(Comm, Result* result) { *result = Ok; return Ok; }
API Result ncclCommCount(Comm c, int* count) { *count = c->size; return Ok; }
API Result ncclCommUserRank(Comm c, int* rank) { *rank = c->rank; return Ok; }
API Result ncclCommRegister(Comm, void*, size_t, void** handle) { *handle = (void*)1; return Ok; }
API Result ncclCommDeregister(Comm, void*) { return Ok; }
API Result ncclCommWindowRegister(Comm, void*, size_t, void** window, int) { *window = (void*)1; return Ok; }
API Result ncclCommWindowDeregister(Comm, void*) { return Ok; }
API Result ncclMemAlloc(void** place, size_t size) { return cudaMalloc && !cudaMalloc(place, size) ? Ok : CudaError; }
API Result ncclMemFree(void* place) { return cudaFree && !cudaFree(place) ? Ok : CudaError; }
API const char* ncclGetLastError(Comm) { return last_error.c_str(); }
API const char* ncclGetErrorString(Result code) {
  static const char* const texts[] = {
      "no error", "unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "unhandled system error (run with NCCL_DEBUG=INFO for details)",
      "internal error - please report this issue to the NCCL developers", "invalid argument (run with NCCL_DEBUG=WARN for details)",
      "invalid usage (run with NCCL_DEBUG=WARN for details)", "remote process exited or there was a network error", "NCCL operation in progress"};
  return code >= 0 && code < 8 ? texts[code] : "unknown result code";
}
API Result ncclRedOpCreatePreMulSum(int* op, void* scalar, int type, int, Comm c) {
  uint16_t bits;
  memcpy(&bits, scalar, sizeof bits);
  c->factors.push_back(type == 7 ? *(float*)scalar : type == 8 ? (float)*(double*)scalar : type == 6 ? from_half(bits) : type == 9 ? from_bfloat(bits) : 1);
  *op = 5 + (int)c->factors.size() - 1;
  return Ok;
}
API Result ncclRedOpDestroy(int, Comm) { return Ok; }

// ---- groups, collectives --------------------------------------------------------------------------------
API Result ncclGroupStart() { depth++; return Ok; }
API Result ncclGroupEnd() { return --depth ? (Result)Ok : flush(); }
API Result ncclGroupSimulateEnd(void*) { return ncclGroupEnd(); }

API Result ncclAllReduce(const void* in, void* out, size_t count, int type, int op, Comm c, Stream) {
  if (const Result code = entered(__func__, c)) return code;
  const size_t bytes = width(type), piece = SLOT / bytes;
  if (c->alone() || empty_buffer(count * bytes)) {
    if (in != out && !empty_buffer(count * bytes)) memmove(out, in, count * bytes);
    return meet(c);
  }
  for (size_t i = 0; i < count; i += piece) {
    const size_t some = std::min(piece, count - i);
    memcpy(c->mine(), (const char*)in + i * bytes, some * bytes);
    if (!barrier(c)) return Internal;
    reduce(c, (char*)out + i * bytes, some, type, op);
    if (i == 0 && corrupt(__func__, c)) memset(out, 0x3f, bytes);
    if (!barrier(c)) return Internal;
  }
  return Ok;
}
API Result ncclReduce(const void* in, void* out, size_t count, int type, int op, int root, Comm c, Stream stream) {
  if (c->rank == root) return ncclAllReduce(in, out, count, type, op, c, stream);
  std::vector<char> unwanted(empty_buffer(count * width(type)) ? 0 : count * width(type));
  return ncclAllReduce(in, unwanted.data(), count, type, op, c, stream);
}
API Result ncclBroadcast(const void* in, void* out, size_t count, int type, int root, Comm c, Stream) {
  if (const Result code = entered(__func__, c)) return code;
  const size_t total = count * width(type);
  if (c->alone() || empty_buffer(total)) {
    if (in != out && c->rank == root && !empty_buffer(total)) memmove(out, in, total);
    return meet(c);
  }
  for (size_t i = 0; i < total; i += SLOT) {
    const size_t some = std::min(SLOT, total - i);
    if (c->rank == root) memcpy(c->mine(), (const char*)in + i, some);
    if (!barrier(c)) return Internal;
    memcpy((char*)out + i, c->slot(root), some);
    if (i == 0 && corrupt(__func__, c)) memset(out, 0x3f, width(type));
    if (!barrier(c)) return Internal;
  }
  return Ok;
}
API Result ncclBcast(void* place, size_t count, int type, int root, Comm c, Stream stream) { return ncclBroadcast(place, place, count, type, root, c, stream); }
API Result ncclAllGather(const void* in, void* out, size_t count, int type, Comm c, Stream) {
  if (const Result code = entered(__func__, c)) return code;
  const size_t total = count * width(type);
  if (empty_buffer(total * (size_t)c->size)) return meet(c);
  if (c->alone()) {
    char* mine = (char*)out + total * (size_t)c->rank;
    if (mine != in) memmove(mine, in, total);
    return Ok;
  }
  for (size_t i = 0; i < total; i += SLOT) {
    const size_t some = std::min(SLOT, total - i);
    memcpy(c->mine(), (const char*)in + i, some);
    if (!barrier(c)) return Internal;
    for (int rank = 0; rank < c->size; rank++) memcpy((char*)out + (size_t)rank * total + i, c->slot(rank), some);
    if (i == 0 && corrupt(__func__, c)) memset(out, 0x3f, width(type));
    if (!barrier(c)) return Internal;
  }
  return Ok;
}
API Result ncclReduceScatter(const void* in, void* out, size_t count, int type, int op, Comm c, Stream) {
  if (const Result code = entered(__func__, c)) return code;
  const size_t bytes = width(type), piece = SLOT / bytes;
  if (empty_buffer(count * bytes * (size_t)c->size)) return meet(c);
  if (c->alone()) {
    const char* mine = (const char*)in + count * bytes * (size_t)c->rank;
    if (mine != out) memmove(out, mine, count * bytes);
    return Ok;
  }
  std::vector<char> whole(count * bytes);  // the two may overlap
  for (int target = 0; target < c->size; target++) {
    for (size_t i = 0; i < count; i += piece) {
      const size_t some = std::min(piece, count - i);
      memcpy(c->mine(), (const char*)in + ((size_t)target * count + i) * bytes, some * bytes);
      if (!barrier(c)) return Internal;
      if (target == c->rank) reduce(c, whole.data() + i * bytes, some, type, op);
      if (!barrier(c)) return Internal;
    }
  }
  memcpy(out, whole.data(), whole.size());
  if (count && corrupt(__func__, c)) memset(out, 0x3f, bytes);
  return Ok;
}
API Result ncclSend(const void* place, size_t count, int type, int peer, Comm c, Stream) { return transfer(c, true, place, count * width(type), peer); }
API Result ncclRecv(void* place, size_t count, int type, int peer, Comm c, Stream) { return transfer(c, false, place, count * width(type), peer); }

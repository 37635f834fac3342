// Computes torch's CUDA operators on the CPU, over the stand-in's device memory (which is host memory).
//
// Every aten operator that has a CUDA kernel is registered anew at the CUDA dispatch key with one
// boxed function: CUDA tensors are aliased as CPU tensors (cpu mode) or as meta tensors (meta mode:
// shapes only, no arithmetic), the operator runs at that key, and what it returns is put into
// tensors of torch's real CUDA caching allocator. Before each operator a kernel is "launched"
// through the runtime, so that the scenario's faults reach it and torch words the error.
//
// It stands for: results (those of the CPU), the sizes that tensors have, what flash and
// memory-efficient attention keep for the backward pass and take meanwhile.
// It does not stand for: a kernel's own temporaries and cuBLAS's workspaces elsewhere, rounding and
// order of sums on a GPU, CUDA's random numbers (the CPU's generator is used), the refusal to mix
// devices in one operator, speed.
//
// STANDIN_MODE=cpu (default) | meta; STANDIN_META_BYTES: operators on fewer bytes than that are
// computed in meta mode too (indices, masks, scalars); STANDIN_TRACE: names of operators on stderr.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

// CUDA's headers are not needed for these three.
extern "C" int cudaLaunchKernel(...) __attribute__((weak));
extern "C" int cudaGetLastError();
namespace c10::cuda {
// The type of the line differs between releases of torch (int in 2.9, uint32_t in 2.11): each has one of the two.
void c10_cuda_check_implementation(int32_t code, const char* file, const char* function, int line, bool assertions)
    __attribute__((weak));
void c10_cuda_check_implementation(int32_t code, const char* file, const char* function, uint32_t line, bool assertions)
    __attribute__((weak));
}

namespace {
using at::Tensor;
using c10::IValue;

bool meta_mode() {
  static const bool on = [] { const char* mode = getenv("STANDIN_MODE"); return mode && !strcmp(mode, "meta"); }();
  return on;
}
int64_t meta_bytes() {
  static const int64_t bytes = [] { const char* text = getenv("STANDIN_META_BYTES"); return text ? atoll(text) : 1LL << 21; }();
  return bytes;
}
bool trace() {
  static const bool on = getenv("STANDIN_TRACE") != nullptr;
  return on;
}
bool only_shapes(int64_t bytes) { return meta_mode() && bytes >= meta_bytes(); }

void launch() {
  const int code = cudaLaunchKernel();
  if (!code) return;
  cudaGetLastError();
  using Check = void (*)(int32_t, const char*, const char*, int, bool);
  using UnsignedCheck = void (*)(int32_t, const char*, const char*, uint32_t, bool);
  if (const Check check = c10::cuda::c10_cuda_check_implementation)
    check(code, __FILE__, __func__, __LINE__, true);
  else
    static_cast<UnsignedCheck>(c10::cuda::c10_cuda_check_implementation)(code, __FILE__, __func__, __LINE__, true);
}

// The aliases of one call's tensors, and the way back.
class Aliases {
 public:
  explicit Aliases(bool meta) : meta(meta) {}

  Tensor of(const Tensor& tensor, bool written = false) {
    if (!tensor.defined()) return tensor;
    if (!tensor.is_cuda()) {
      const bool big = meta && tensor.device().is_cpu() && tensor.dim() > 0;
      return big ? at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta)) : tensor;
    }
    const auto known = alias_of.find(tensor.unsafeGetTensorImpl());
    if (known != alias_of.end()) return known->second;
    if (!device) device = tensor.device();
    Tensor alias;
    if (meta) {
      alias = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(at::kMeta).requires_grad(false));
      if (written && tensor.numel() == 0) grown.emplace_back(tensor, alias);
    } else if (tensor.numel() == 0) {
      alias = at::empty(tensor.sizes(), at::TensorOptions().dtype(tensor.dtype()).device(at::kCPU));
      if (written) grown.emplace_back(tensor, alias);
    } else {
      alias = at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.dtype()).device(at::kCPU));
    }
    original[alias.unsafeGetTensorImpl()] = tensor;
    alias_of[tensor.unsafeGetTensorImpl()] = alias;
    return alias;
  }

  // The CUDA tensor of an alias, or a new one with the same contents.
  Tensor back(const Tensor& tensor) {
    if (!tensor.defined() || tensor.is_cuda()) return tensor;
    const auto known = original.find(tensor.unsafeGetTensorImpl());
    if (known != original.end()) return known->second;
    const c10::Device target = device ? *device : c10::Device(c10::kCUDA, -1);
    c10::OptionalDeviceGuard guard;
    if (device) guard.reset_device(target);
    Tensor out = at::empty_strided(tensor.sizes(), tensor.strides(), at::TensorOptions().dtype(tensor.dtype()).device(target));
    // of shapes alone a small result is 0: a loss or a norm that is read must be finite
    if (meta && tensor.numel() && !only_shapes((int64_t)out.nbytes())) memset(out.data_ptr(), 0, out.nbytes());
    if (!meta && tensor.numel())
      memcpy(out.data_ptr(), tensor.data_ptr(), at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.element_size()));
    return out;
  }

  // Out tensors that were empty and that the operator has resized.
  void grow() {
    for (auto& [tensor, alias] : grown) {
      if (alias.numel() == 0 && alias.sizes() == tensor.sizes()) continue;
      tensor.resize_(alias.sizes());
      if (meta) {
        if (!only_shapes((int64_t)tensor.nbytes())) memset(tensor.data_ptr(), 0, tensor.nbytes());
        continue;
      }
      const Tensor contents = alias.contiguous();
      if (contents.numel()) memcpy(tensor.data_ptr(), contents.data_ptr(), contents.nbytes());
    }
  }

  const bool meta;

 private:
  std::unordered_map<c10::TensorImpl*, Tensor> original;
  std::unordered_map<c10::TensorImpl*, Tensor> alias_of;
  std::vector<std::pair<Tensor, Tensor>> grown;
  std::optional<c10::Device> device;
};

// ---- any operator -----------------------------------------------------------------------------------

int64_t bytes_of(const IValue& value) {
  if (value.isTensor()) {
    const Tensor& tensor = value.toTensor();
    return tensor.defined() && tensor.is_cuda() ? (int64_t)(tensor.numel() * tensor.element_size()) : 0;
  }
  int64_t sum = 0;
  if (value.isTensorList())
    for (const Tensor& tensor : value.toTensorList()) sum += bytes_of(IValue(tensor));
  else if (value.isList())
    for (const IValue& element : value.toListRef()) sum += bytes_of(element);
  return sum;
}

IValue to_aliases(Aliases& aliases, const IValue& value, bool written) {
  if (value.isTensor()) return aliases.of(value.toTensor(), written);
  if (value.isTensorList()) {
    c10::List<Tensor> out;
    for (const Tensor& tensor : value.toTensorList()) out.push_back(aliases.of(tensor, written));
    return out;
  }
  if (value.isList()) {
    bool any = false;
    for (const IValue& element : value.toListRef()) any = any || element.isTensor();
    if (!any) return value;
    c10::List<std::optional<Tensor>> out;
    for (const IValue& element : value.toListRef())
      out.push_back(element.isTensor() ? std::optional<Tensor>(aliases.of(element.toTensor(), written)) : std::nullopt);
    return out;
  }
  if (value.isDevice() && value.toDevice().is_cuda()) return c10::Device(aliases.meta ? at::kMeta : at::kCPU);
  if (value.isGenerator()) return IValue();
  return value;
}

IValue from_aliases(Aliases& aliases, const IValue& value) {
  if (value.isTensor()) return aliases.back(value.toTensor());
  if (!value.isTensorList()) return value;
  c10::List<Tensor> out;
  for (const Tensor& tensor : value.toTensorList()) out.push_back(aliases.back(tensor));
  return out;
}

void run(const c10::OperatorHandle& op, torch::jit::Stack* stack, bool meta) {
  const auto& arguments = op.schema().arguments();
  Aliases aliases(meta);
  torch::jit::Stack inner;
  for (size_t i = 0; i < arguments.size(); i++) {
    const auto* info = arguments[i].alias_info();
    inner.push_back(to_aliases(aliases, (*stack)[stack->size() - arguments.size() + i], info && info->isWrite()));
  }
  op.redispatchBoxed(c10::DispatchKeySet(meta ? c10::DispatchKey::Meta : c10::DispatchKey::CPU), &inner);
  aliases.grow();
  torch::jit::Stack out;
  for (const IValue& value : inner) out.push_back(from_aliases(aliases, value));
  stack->erase(stack->end() - (long)arguments.size(), stack->end());
  for (IValue& value : out) stack->push_back(std::move(value));
}

// Operators that turned out to have no meta kernel.
class NoMeta {
 public:
  bool has(const std::string& name) { const std::lock_guard<std::mutex> held(guard); return names.count(name) > 0; }
  void add(const std::string& name) { const std::lock_guard<std::mutex> held(guard); names.insert(name); }

 private:
  std::mutex guard;
  std::unordered_set<std::string> names;
};

void on_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  static auto* const no_meta = new NoMeta;
  const std::string name = toString(op.operator_name());
  if (trace()) fprintf(stderr, "[standin] %s\n", name.c_str());
  launch();
  int64_t bytes = 0;
  const size_t count = op.schema().arguments().size();
  for (size_t i = 0; i < count; i++) bytes += bytes_of((*stack)[stack->size() - count + i]);
  if (only_shapes(bytes) && !no_meta->has(name)) {
    try {
      run(op, stack, true);
      return;
    } catch (const std::exception& error) {
      if (trace()) fprintf(stderr, "[standin] no meta for %s: %.200s\n", name.c_str(), error.what());
      no_meta->add(name);
    }
  }
  run(op, stack, false);
}

// ---- operators that the CPU does not have, or has otherwise --------------------------------------------

Tensor& copy(Tensor& self, const Tensor& source, bool) {
  const at::NoGradGuard no_grad;
  if (!self.numel()) return self;
  launch();
  if (only_shapes((int64_t)(self.numel() * self.element_size()))) return self;
  Aliases aliases(false);
  Tensor to = aliases.of(self, true);
  to.copy_(aliases.of(source));
  return self;
}

// softmax: CUDA's kernels take half precision and give fp32 in one step
Tensor softmax_of(const Tensor& x, int64_t dim, bool to_float, bool log) {
  launch();
  Aliases aliases(only_shapes((int64_t)x.nbytes()));
  Tensor a = aliases.of(x);
  if (to_float) a = a.to(at::kFloat);
  return aliases.back(log ? at::_log_softmax(a, dim, false) : at::_softmax(a, dim, false));
}
Tensor softmax_gradient(const Tensor& gradient, const Tensor& y, int64_t dim, at::ScalarType type, bool log) {
  launch();
  Aliases aliases(only_shapes((int64_t)gradient.nbytes()));
  const Tensor a = aliases.of(gradient), b = aliases.of(y);
  const Tensor out = log ? at::_log_softmax_backward_data(a, b, dim, a.scalar_type()) : at::_softmax_backward_data(a, b, dim, a.scalar_type());
  return aliases.back(out.to(type));
}
Tensor softmax(const Tensor& x, int64_t dim, bool to_float) { return softmax_of(x, dim, to_float, false); }
Tensor log_softmax(const Tensor& x, int64_t dim, bool to_float) { return softmax_of(x, dim, to_float, true); }
Tensor softmax_backward(const Tensor& g, const Tensor& y, int64_t dim, at::ScalarType type) { return softmax_gradient(g, y, dim, type, false); }
Tensor log_softmax_backward(const Tensor& g, const Tensor& y, int64_t dim, at::ScalarType type) { return softmax_gradient(g, y, dim, type, true); }

// histc: the CPU counts no whole numbers
Tensor histc(const Tensor& x, int64_t bins, const at::Scalar& least, const at::Scalar& most) {
  launch();
  Aliases aliases(only_shapes((int64_t)x.nbytes()));
  const Tensor a = aliases.of(x);
  if (aliases.meta) return aliases.back(at::empty({bins}, a.options()));
  return aliases.back(at::histc(a.to(at::kDouble), bins, least, most).to(a.scalar_type()));
}

// convolutions: torch calls cuDNN's by their own names
Tensor convolution(const Tensor& x, const Tensor& weight, at::IntArrayRef padding, at::IntArrayRef stride,
                   at::IntArrayRef dilation, int64_t groups, bool, bool, bool) {
  const at::NoGradGuard no_grad;
  launch();
  Aliases aliases(only_shapes((int64_t)(x.nbytes() + weight.nbytes())));
  const Tensor a = aliases.of(x), w = aliases.of(weight);
  const std::vector<int64_t> none(padding.size(), 0);
  return aliases.back(at::convolution(a, w, {}, stride, padding, dilation, false, none, groups));
}
Tensor depthwise(const Tensor& x, const Tensor& weight, at::IntArrayRef, const std::optional<Tensor>& bias,
                 at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation) {
  const at::NoGradGuard no_grad;
  launch();
  Aliases aliases(only_shapes((int64_t)(x.nbytes() + weight.nbytes())));
  const Tensor a = aliases.of(x), w = aliases.of(weight), b = bias ? aliases.of(*bias) : Tensor();
  const std::vector<int64_t> none(padding.size(), 0);
  return aliases.back(at::convolution(a, w, b, stride, padding, dilation, false, none, x.size(1)));
}
std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& gradient, const Tensor& x, const Tensor& weight, at::OptionalIntArrayRef bias, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef more, int64_t groups,
    std::array<bool, 3> wanted) {
  const at::NoGradGuard no_grad;
  launch();
  Aliases aliases(only_shapes((int64_t)(x.nbytes() + weight.nbytes())));
  const Tensor g = aliases.of(gradient), a = aliases.of(x), w = aliases.of(weight);
  if (aliases.meta) {
    const auto like = [&](const Tensor& tensor) { return aliases.back(at::empty_like(tensor)); };
    return {wanted[0] ? like(a) : Tensor(), wanted[1] ? like(w) : Tensor(),
            wanted[2] ? aliases.back(at::empty({w.size(0)}, w.options())) : Tensor()};
  }
  const auto [dx, dw, db] = at::convolution_backward(g, a, w, bias, stride, padding, dilation, transposed, more, groups, wanted);
  return {aliases.back(dx), aliases.back(dw), aliases.back(db)};
}

// products: the CPU multiplies fp16 in a naive loop; as a GPU does, in fp32, rounded once
template <class Product> Tensor product(const Tensor& a, const Tensor& b, const Tensor& c, Product multiply) {
  const at::NoGradGuard no_grad;
  launch();
  // an adapter's second matrix makes much from little
  const int64_t made = a.numel() / std::max<int64_t>(1, a.size(-1)) * b.size(-1) * (int64_t)a.element_size();
  Aliases aliases(only_shapes(std::max((int64_t)(a.nbytes() + b.nbytes()), made)));
  Tensor x = aliases.of(a), y = aliases.of(b), z = aliases.of(c);
  if (aliases.meta || a.scalar_type() != at::kHalf) return aliases.back(multiply(x, y, z));
  return aliases.back(multiply(x.to(at::kFloat), y.to(at::kFloat), z.defined() ? z.to(at::kFloat) : z).to(at::kHalf));
}
Tensor mm(const Tensor& a, const Tensor& b) {
  return product(a, b, {}, [](const Tensor& x, const Tensor& y, const Tensor&) { return at::mm(x, y); });
}
Tensor bmm(const Tensor& a, const Tensor& b) {
  return product(a, b, {}, [](const Tensor& x, const Tensor& y, const Tensor&) { return at::bmm(x, y); });
}
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return product(a, b, c, [&](const Tensor& x, const Tensor& y, const Tensor& z) { return at::addmm(z, x, y, beta, alpha); });
}
Tensor baddbmm(const Tensor& c, const Tensor& a, const Tensor& b, const at::Scalar& beta, const at::Scalar& alpha) {
  return product(a, b, c, [&](const Tensor& x, const Tensor& y, const Tensor& z) { return at::baddbmm(z, x, y, beta, alpha); });
}

// ---- attention: what the CUDA kernels keep (outputs, logsumexp in fp32, the state of dropout) ------------
// Layouts are batch × heads × sequence × width; outputs lie in memory as batch × sequence × heads × width.

Tensor empty_like_kernel(const Tensor& t, int64_t width) {
  return at::empty({t.size(0), t.size(2), t.size(1), width}, t.options()).transpose(1, 2);
}
double scale_of(const Tensor& query, std::optional<double> scale) { return scale.value_or(1.0 / std::sqrt((double)query.size(-1))); }
Tensor repeated(const Tensor& t, int64_t heads) { return t.size(1) == heads ? t : t.repeat_interleave(heads / t.size(1), 1); }
Tensor summed(const Tensor& gradient, int64_t heads) {  // over the queries that share a head
  if (gradient.size(1) == heads) return gradient;
  return gradient.reshape({gradient.size(0), heads, gradient.size(1) / heads, gradient.size(2), gradient.size(3)}).sum(2);
}

struct Scores { Tensor query, key, value, scores; };
Scores scores_of(Aliases& aliases, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias, bool causal, double scale) {
  const Tensor query = aliases.of(q).to(at::kFloat);
  const Tensor key = repeated(aliases.of(k).to(at::kFloat), q.size(1)), value = repeated(aliases.of(v).to(at::kFloat), q.size(1));
  Tensor scores = at::matmul(query, key.transpose(-2, -1)) * scale;
  if (bias.defined()) scores = scores + aliases.of(bias).to(at::kFloat);
  if (causal) {
    const Tensor hidden = at::ones({scores.size(-2), scores.size(-1)}, at::TensorOptions().dtype(at::kBool)).tril().logical_not();
    scores = scores.masked_fill(hidden, -INFINITY);
  }
  return {query, key, value, scores};
}
void attend(const Scores& s, const Tensor& out, const Tensor& logsumexp) {
  Aliases aliases(false);
  const Tensor sums = at::logsumexp(s.scores, {-1});
  aliases.of(out, true).copy_(at::matmul(at::exp(s.scores - sums.unsqueeze(-1)), s.value));
  if (logsumexp.size(-1)) aliases.of(logsumexp, true).narrow(-1, 0, sums.size(-1)).copy_(sums);
}
// Gradients of queries, keys and values; returns that of the scores.
Tensor attend_backward(const Scores& s, const Tensor& go, const Tensor& out, const Tensor& logsumexp, double scale,
                       const Tensor& dq, const Tensor& dk, const Tensor& dv) {
  Aliases aliases(false);
  const Tensor gradient = aliases.of(go).to(at::kFloat), result = aliases.of(out).to(at::kFloat);
  const Tensor sums = aliases.of(logsumexp).narrow(-1, 0, s.query.size(2));
  const Tensor weights = at::exp(s.scores - sums.unsqueeze(-1));
  const Tensor ds = weights * (at::matmul(gradient, s.value.transpose(-2, -1)) - (gradient * result).sum(-1, true));
  aliases.of(dq, true).copy_(at::matmul(ds, s.key) * scale);
  aliases.of(dk, true).copy_(summed(at::matmul(ds.transpose(-2, -1), s.query) * scale, dk.size(1)));
  aliases.of(dv, true).copy_(summed(at::matmul(weights.transpose(-2, -1), gradient), dv.size(1)));
  return ds;
}

using FlashOut = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;
FlashOut flash(const Tensor& q, const Tensor& k, const Tensor& v, double, bool causal, bool, std::optional<double> scale) {
  const at::NoGradGuard no_grad;
  launch();
  const auto options = q.options();
  const Tensor out = empty_like_kernel(q, v.size(3));
  const Tensor logsumexp = at::empty({q.size(0), q.size(1), q.size(2)}, options.dtype(at::kFloat));
  if (!only_shapes((int64_t)q.nbytes())) {
    Aliases aliases(false);
    attend(scores_of(aliases, q, k, v, {}, causal, scale_of(q, scale)), out, logsumexp);
  }
  const Tensor state = at::empty({2}, options.dtype(at::kUInt64)), unused = at::empty({}, options.dtype(at::kUInt64));
  return {out, logsumexp, Tensor(), Tensor(), q.sym_size(2), k.sym_size(2), state, unused, at::empty({0}, options)};
}
std::tuple<Tensor, Tensor, Tensor> flash_backward(
    const Tensor& go, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& out, const Tensor& logsumexp, const Tensor&,
    const Tensor&, c10::SymInt, c10::SymInt, double, bool causal, const Tensor&, const Tensor&, std::optional<double> scale) {
  const at::NoGradGuard no_grad;
  launch();
  const Tensor dq = empty_like_kernel(q, q.size(3)), dk = empty_like_kernel(k, k.size(3)), dv = empty_like_kernel(v, v.size(3));
  // the kernel's temporaries: the queries' gradient in fp32 and a sum a row, the sequence rounded to 128
  const int64_t rounded = (q.size(2) + 127) / 128 * 128;
  const Tensor in_fp32 = at::empty({q.size(0), rounded, q.size(1), q.size(3)}, q.options().dtype(at::kFloat));
  const Tensor rows = at::empty({q.size(0), q.size(1), rounded}, q.options().dtype(at::kFloat));
  if (!only_shapes((int64_t)q.nbytes())) {
    Aliases aliases(false);
    attend_backward(scores_of(aliases, q, k, v, {}, causal, scale_of(q, scale)), go, out, logsumexp, scale_of(q, scale), dq, dk, dv);
  }
  return {dq, dk, dv};
}

// memory-efficient attention (fp32, or with a mask); its logsumexp has the queries rounded to 32
std::tuple<Tensor, Tensor, Tensor, Tensor> efficient(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& bias,
                                                     bool keep, double, bool causal, std::optional<double> scale) {
  const at::NoGradGuard no_grad;
  launch();
  const Tensor out = empty_like_kernel(q, v.size(3));
  const Tensor logsumexp = at::empty({q.size(0), q.size(1), keep ? (q.size(2) + 31) / 32 * 32 : 0}, q.options().dtype(at::kFloat));
  if (!only_shapes((int64_t)q.nbytes())) {
    Aliases aliases(false);
    attend(scores_of(aliases, q, k, v, bias.value_or(Tensor()), causal, scale_of(q, scale)), out, logsumexp);
  }
  const auto counter = q.options().dtype(at::kLong);
  return {out, logsumexp, at::empty({}, counter), at::empty({}, counter)};
}
std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_backward(
    const Tensor& go, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias, const Tensor& out, const Tensor& logsumexp,
    const Tensor&, const Tensor&, double, std::array<bool, 4> wanted, bool causal, std::optional<double> scale) {
  const at::NoGradGuard no_grad;
  if (!go.defined()) return {};
  launch();
  const Tensor dq = empty_like_kernel(q, q.size(3)), dk = empty_like_kernel(k, k.size(3)), dv = empty_like_kernel(v, v.size(3));
  const Tensor db = wanted[3] && bias.defined() ? at::empty_like(bias) : Tensor();
  if (!only_shapes((int64_t)q.nbytes())) {
    Aliases aliases(false);
    const Scores scores = scores_of(aliases, q, k, v, bias, causal, scale_of(q, scale));
    const Tensor ds = attend_backward(scores, go, out, logsumexp, scale_of(q, scale), dq, dk, dv);
    if (db.defined()) Aliases(false).of(db, true).copy_(ds.sum_to_size(bias.sizes()));
  }
  return {dq, dk, dv, db};
}

// ---- registration -----------------------------------------------------------------------------------

// Operators whose own CUDA kernel is kept: they make, view or resize tensors, or call the runtime only.
const std::unordered_set<std::string> KEPT = {
    "empty", "empty_strided", "as_strided", "view", "_reshape_alias", "view_as_real", "view_as_complex", "unfold", "resize_",
    "resize_as_", "set_", "_local_scalar_dense", "record_stream", "is_pinned", "_pin_memory", "is_set_to", "_fused_sdp_choice",
    "_resize_output_", "lift", "_assert_async", "_nested_view_from_buffer", "alias", "_copy_from", "_has_same_storage_numel",
    "_empty_affine_quantized", "_cudnn_init_dropout_state"};

struct Registration {
  torch::Library library{torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__};
  std::unordered_set<std::string> ours;

  template <class Function> void own(const char* name, Function&& function) {
    library.impl(name, std::forward<Function>(function));
    ours.insert(name);
  }

  Registration() {
    own("copy_", TORCH_FN(copy));
    own("histc", TORCH_FN(histc));
    own("cudnn_convolution", TORCH_FN(convolution));
    own("_conv_depthwise2d", TORCH_FN(depthwise));
    own("convolution_backward", TORCH_FN(convolution_backward));
    own("mm", TORCH_FN(mm));
    own("bmm", TORCH_FN(bmm));
    own("addmm", TORCH_FN(addmm));
    own("baddbmm", TORCH_FN(baddbmm));
    own("_softmax", TORCH_FN(softmax));
    own("_log_softmax", TORCH_FN(log_softmax));
    own("_softmax_backward_data", TORCH_FN(softmax_backward));
    own("_log_softmax_backward_data", TORCH_FN(log_softmax_backward));
    own("_scaled_dot_product_flash_attention", TORCH_FN(flash));
    own("_scaled_dot_product_flash_attention_backward", TORCH_FN(flash_backward));
    own("_scaled_dot_product_efficient_attention", TORCH_FN(efficient));
    own("_scaled_dot_product_efficient_attention_backward", TORCH_FN(efficient_backward));
    for (const auto& name : c10::Dispatcher::singleton().getAllOpNames()) {
      if (name.name.rfind("aten::", 0) != 0) continue;
      const auto op = c10::Dispatcher::singleton().findSchema(name);
      if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CUDA)) continue;
      const std::string bare = name.name.substr(6);
      const std::string full = bare + (name.overload_name.empty() ? "" : "." + name.overload_name);
      const bool kept = KEPT.count(bare) && (name.overload_name != "out" || bare == "empty" || bare == "set_");
      if (kept || ours.count(full)) continue;
      library.impl(full.c_str(), torch::CppFunction::makeFromBoxedFunction<&on_cpu>());
    }
  }
};
}  // namespace

// Called by hook.py once torch has been imported.
extern "C" __attribute__((visibility("default"))) void standin_install() {
  static const auto* const once = new Registration;
  (void)once;
  // torch 2.11 prefers cuDNN's attention on Hopper; the stand-in has FlashAttention and the memory-efficient one
  at::globalContext().setSDPUseCuDNN(false);
}

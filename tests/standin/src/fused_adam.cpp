// DeepSpeed's fused_adam, as if it had been pre-built: the arithmetic of Adam and AdamW with sums in
// fp32, on the CPU. In meta mode (operators.cpp) there is nothing to compute.
#include <torch/extension.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace {
struct Rates { float learning, beta1, beta2, epsilon, correction1, correction2, decay; bool decoupled; };

template <class T, class State> void step(T* weight, const T* gradient, State* mean, State* square, int64_t count, const Rates& r) {
  for (int64_t i = 0; i < count; i++) {
    const float w = (float)weight[i];
    const float g = (float)gradient[i] + (r.decoupled ? 0 : r.decay * w);
    const float m = r.beta1 * (float)mean[i] + (1 - r.beta1) * g;
    const float v = r.beta2 * (float)square[i] + (1 - r.beta2) * g * g;
    const float update = (m / r.correction1) / (std::sqrt(v / r.correction2) + r.epsilon) + (r.decoupled ? r.decay * w : 0);
    weight[i] = (T)(w - r.learning * update);
    mean[i] = (State)m;
    square[i] = (State)v;
  }
}
template <class T> void step_of(const std::vector<std::vector<at::Tensor>>& lists, size_t i, const Rates& rates) {
  const auto place = [&](size_t list) { return lists[list][i].data_ptr(); };
  const int64_t count = lists[1][i].numel();
  if (lists[2][i].scalar_type() == at::kFloat)
    step((T*)place(1), (const T*)place(0), (float*)place(2), (float*)place(3), count, rates);
  else
    step((T*)place(1), (const T*)place(0), (T*)place(2), (T*)place(3), count, rates);
}

// lists: gradients, weights, means, squares
void multi_tensor_adam(int, const at::Tensor&, std::vector<std::vector<at::Tensor>> lists, float learning, float beta1, float beta2,
                       float epsilon, int steps, int mode, int correct, float decay) {
  const char* bed = getenv("STANDIN_MODE");
  if (bed && !strcmp(bed, "meta")) return;
  const auto correction = [&](float beta) { return correct ? 1 - std::pow(beta, (float)steps) : 1; };
  const Rates rates{learning, beta1, beta2, epsilon, correction(beta1), correction(beta2), decay, mode == 1};
  for (size_t i = 0; i < lists[0].size(); i++) {
    switch (lists[1][i].scalar_type()) {
      case at::kFloat: step_of<float>(lists, i, rates); break;
      case at::kHalf: step_of<at::Half>(lists, i, rates); break;
      case at::kBFloat16: step_of<at::BFloat16>(lists, i, rates); break;
      default: TORCH_CHECK(false, "the stand-in has no fused_adam for this type");
    }
  }
}
}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) { module.def("multi_tensor_adam", &multi_tensor_adam); }

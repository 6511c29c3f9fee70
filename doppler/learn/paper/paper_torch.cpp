// The only file of the module doppler_torch, and the only one outside the tests that sees torch. It links nothing of
// ours: what it takes from our headers is inline.

#include "doppler/learn/paper/paper_torch.h"

#include <memory>
#include <torch/torch.h>

#include "doppler/learn/nn/dense.h"

namespace doppler {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::tensor_list;

constexpr double kScoreLimit = 10;       // SEL's scores stay within it, so that exp(score) is a number.
constexpr double kVarianceFloor = 1e-8;  // It is added to the variance when path sums are standardised.
constexpr std::int64_t kWidth = kPaperWidth, kMatrix = kWidth * kWidth;

const float* data(const Tensor& tensor) { return tensor.data_ptr<float>(); }
float* mutable_data(Tensor& tensor) { return tensor.data_ptr<float>(); }
std::size_t extent(const Tensor& tensor, int dimension) { return static_cast<std::size_t>(tensor.size(dimension)); }

// A pointer that travels to the backward pass; what it points to lives until the next embed().
template <typename T>
void keep(AutogradContext* context, const char* name, const T* pointer) {
  context->saved_data[name] = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(pointer));
}
template <typename T>
const T& kept(AutogradContext* context, const char* name) {
  return *reinterpret_cast<const T*>(static_cast<std::intptr_t>(context->saved_data[name].toInt()));
}

// x · w with our own kernel: libtorch takes whatever BLAS the system has, which on a bare Debian is the reference
// implementation and several times slower.
struct Multiply : torch::autograd::Function<Multiply> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& w) {
    TORCH_CHECK(x.is_contiguous() && w.is_contiguous());
    context->save_for_backward({x, w});
    Tensor y = torch::zeros({x.size(0), w.size(1)});
    dense::multiply_add(data(x), data(w), mutable_data(y), extent(x, 0), extent(w, 0), extent(w, 1));
    return y;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &w = saved[1], g = gradients[0].contiguous();
    Tensor of_x, of_w = torch::zeros_like(w);
    dense::outer_add(data(x), data(g), mutable_data(of_w), extent(x, 0), extent(w, 0), extent(w, 1));
    if (x.requires_grad()) {
      std::vector<float> scratch;
      of_x = torch::zeros_like(x);
      dense::multiply_transposed_add(data(g), data(w), mutable_data(of_x), extent(x, 0), extent(w, 0), extent(w, 1),
                                     scratch);
    }
    return {of_x, of_w};
  }
};

// The edge network W(e) = reshape(second(relu(first(e)))) is piecewise linear in the value of a tensor. Tensors are
// sorted by value, so those that share a piece are neighbours: a piece with one value costs one matrix, a piece with
// many two, W = A + value · B, however large the graph. A term adds rows [begin, end) times one matrix.
struct Term {
  std::size_t begin, end, matrix;
  bool times_value;
};
struct Terms {
  const float* values;
  std::vector<Term> list;
  std::vector<float> constant, slope;  // Per matrix: how much of the first layer's bias and weight it has.
  std::vector<float> mask;             // Matrix × kWidth: where relu is open.
};

// Y[t] = X[t] · W(value[t])
struct MultiplyByPiece : torch::autograd::Function<MultiplyByPiece> {
  static const float* factor(const Terms& terms, const Term& term, const float* x, std::vector<float>& scaled) {
    const float* rows = x + term.begin * kPaperWidth;
    if (!term.times_value) return rows;
    scaled.assign(rows, rows + (term.end - term.begin) * kPaperWidth);
    for (std::size_t t = term.begin; t < term.end; ++t)
      for (std::size_t k = 0; k < kPaperWidth; ++k) scaled[(t - term.begin) * kPaperWidth + k] *= terms.values[t];
    return scaled.data();
  }

  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& matrices, const Terms* terms) {
    TORCH_CHECK(x.is_contiguous() && matrices.is_contiguous());
    context->save_for_backward({x, matrices});
    keep(context, "terms", terms);
    Tensor y = torch::zeros_like(x);
    std::vector<float> scaled;
    for (const Term& term : terms->list)
      dense::multiply_add(factor(*terms, term, data(x), scaled), data(matrices) + term.matrix * kMatrix,
                          mutable_data(y) + term.begin * kPaperWidth, term.end - term.begin, kPaperWidth, kPaperWidth);
    return y;
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto& terms = kept<Terms>(context, "terms");
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &matrices = saved[1], g = gradients[0].contiguous();
    Tensor of_x = torch::zeros_like(x), of_matrices = torch::zeros_like(matrices);
    std::vector<float> scaled, part, scratch;
    for (const Term& term : terms.list) {
      const std::size_t rows = term.end - term.begin;
      const float* own = data(g) + term.begin * kPaperWidth;
      dense::outer_add(factor(terms, term, data(x), scaled), own, mutable_data(of_matrices) + term.matrix * kMatrix,
                       rows, kPaperWidth, kPaperWidth);
      part.assign(rows * kPaperWidth, 0.0F);
      dense::multiply_transposed_add(own, data(matrices) + term.matrix * kMatrix, part.data(), rows, kPaperWidth,
                                     kPaperWidth, scratch);
      for (std::size_t row = 0; row < rows; ++row)
        dense::add_scaled(term.times_value ? terms.values[term.begin + row] : 1.0F, part.data() + row * kPaperWidth,
                          mutable_data(of_x) + (term.begin + row) * kPaperWidth, kPaperWidth);
    }
    return {of_x, of_matrices, Tensor()};
  }
};

// Sums along paths: S[v] = H[v] + S[next[v]]. `order` comes to next[v] after v.
struct Path {
  std::vector<std::int64_t> order;
  const std::vector<std::int64_t>* next;
};
struct PathSum : torch::autograd::Function<PathSum> {
  static Tensor forward(AutogradContext* context, const Tensor& h, const Path* path) {
    keep(context, "path", path);
    Tensor sum = h.contiguous().clone();
    for (auto at = path->order.rbegin(); at != path->order.rend(); ++at) add_row(*path, *at, mutable_data(sum), false);
    return sum;
  }
  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const Path& path = kept<Path>(context, "path");
    Tensor g = gradients[0].contiguous().clone();
    for (const std::int64_t op : path.order) add_row(path, op, mutable_data(g), true);
    return {g, Tensor()};
  }
  static void add_row(const Path& path, std::int64_t op, float* rows, bool to_next) {
    const std::int64_t next = (*path.next)[static_cast<std::size_t>(op)];
    if (next < 0) return;
    float *own = rows + op * kWidth, *other = rows + next * kWidth;
    dense::add(to_next ? own : other, to_next ? other : own, kPaperWidth);
  }
};

Tensor leaky(const Tensor& x) { return torch::leaky_relu(x, kLeak); }
Tensor standardised(const Tensor& x) {
  const Tensor centred = x - x.mean(0, true);
  return centred * torch::rsqrt(centred.square().mean(0, true) + kVarianceFloor);
}
Tensor indices(const std::vector<std::int64_t>& values) {
  return torch::tensor(at::ArrayRef<std::int64_t>(values), torch::kInt64);
}

class TorchNetworks final : public PaperTorch {
 public:
  TorchNetworks(float* parameters, float* gradients) : parameters_(parameters), gradients_(gradients) {
    sel_gnn_ = cut(kPaperGnn);
    sel_ = cut(kPaperSel);
    plc_gnn_ = cut(kPaperGnn);
    plc_ = cut(kPaperPlc);
  }

  void embed(const PaperGraph& graph, Embedding<float>& embedding) override {
    prepare(graph);
    score_ = scores(pass_messages(sel_gnn_, 0));
    const Tensor h = pass_messages(plc_gnn_, 1);
    const Tensor z = leaky(map(features_, plc_[0], plc_[1]));
    const Tensor mixed = Multiply::apply(torch::cat({z, h}, 1), plc_[2].narrow(0, 0, 2 * kWidth).contiguous());
    current_ = mixed + plc_[3];
    placed_ = Multiply::apply(h, plc_[2].narrow(0, 2 * kWidth, kWidth).contiguous());
    copy(score_, embedding.score);
    copy(current_, embedding.current);
    copy(placed_, embedding.placed);
  }

  void backward(const Embedding<float>& gradient) override {
    const auto like = [](const std::vector<float>& values, const Tensor& tensor) {
      return torch::tensor(at::ArrayRef<float>(values)).view(tensor.sizes());
    };
    torch::autograd::backward(
        {score_, current_, placed_},
        {like(gradient.score, score_), like(gradient.current, current_), like(gradient.placed, placed_)});
  }

 private:
  // Views of the flat arrays; autograd adds to the gradients in place.
  std::vector<Tensor> cut(std::span<const PaperBlock> blocks) {
    std::vector<Tensor> result;
    for (const PaperBlock& block : blocks) {
      const std::int64_t shape[] = {static_cast<std::int64_t>(block.rows), static_cast<std::int64_t>(block.columns)};
      Tensor view = torch::from_blob(parameters_, shape).requires_grad_();
      view.mutable_grad() = torch::from_blob(gradients_, shape);
      parameters_ += block.size();
      gradients_ += block.size();
      result.push_back(std::move(view));
    }
    return result;
  }

  void prepare(const PaperGraph& graph) {
    graph_ = &graph;
    const auto ops = static_cast<std::int64_t>(graph.ops);
    features_ = torch::tensor(at::ArrayRef<float>(graph.features)).view({ops, -1});
    producer_ = indices(graph.producer);
    edge_tensor_ = indices(graph.edge_tensor);
    edge_consumer_ = indices(graph.edge_consumer);
    to_exit_ = {graph.order, &graph.to_exit};
    to_entry_ = {{graph.order.rbegin(), graph.order.rend()}, &graph.to_entry};
  }

  static Tensor map(const Tensor& x, const Tensor& weight, const Tensor& bias) {
    return Multiply::apply(x, weight) + bias;
  }
  static void copy(const Tensor& from, std::vector<float>& to) {
    const Tensor values = from.detach().contiguous();
    std::copy_n(data(values), to.size(), to.data());
  }

  // The pieces of the edge network on which this graph's tensors lie.
  void find_pieces(const std::vector<Tensor>& gnn, int direction, Terms& terms) const {
    const float *weight = data(gnn[2]), *bias = data(gnn[3]);
    const std::vector<float>& values = graph_->value;
    terms = {values.data(), {}, {}, {}, {}};
    std::vector<float> open(kPaperWidth), next(kPaperWidth);
    const auto look = [&](std::size_t tensor) {
      for (std::size_t k = 0; k < kPaperWidth; ++k)
        next[k] = values[tensor] * weight[k] + (direction == 0 ? 0 : weight[kPaperWidth + k]) + bias[k] > 0 ? 1 : 0;
    };
    const auto matrix = [&](std::size_t begin, std::size_t end, float constant, float slope, bool times_value) {
      terms.list.push_back({begin, end, terms.constant.size(), times_value});
      terms.constant.push_back(constant);
      terms.slope.push_back(slope);
      terms.mask.insert(terms.mask.end(), open.begin(), open.end());
    };
    for (std::size_t begin = 0; begin < values.size();) {
      look(begin);
      open = next;
      std::size_t end = begin + 1;
      while (end < values.size() && (values[end] == values[begin] || (look(end), next == open))) ++end;
      if (values[end - 1] == values[begin]) {
        matrix(begin, end, 1, values[begin], false);
      } else {
        matrix(begin, end, 1, 0, false);
        matrix(begin, end, 0, 1, true);
      }
      begin = end;
    }
  }

  static Tensor edge_matrices(const std::vector<Tensor>& gnn, int direction, const Terms& terms) {
    const auto count = static_cast<std::int64_t>(terms.constant.size());
    const Tensor constant = torch::tensor(at::ArrayRef<float>(terms.constant)).view({count, 1});
    const Tensor slope = torch::tensor(at::ArrayRef<float>(terms.slope)).view({count, 1});
    const Tensor mask = torch::tensor(at::ArrayRef<float>(terms.mask)).view({count, kWidth});
    Tensor offset = gnn[3];
    if (direction == 1) offset = offset + gnn[2].narrow(0, 1, 1);
    const Tensor hidden = mask * (constant * offset + slope * gnn[2].narrow(0, 0, 1));
    return Multiply::apply(hidden, gnn[4]) + constant * gnn[5];
  }

  // H. A message along a tensor depends on its producer only, one against it on the sum of its consumers only.
  Tensor pass_messages(const std::vector<Tensor>& gnn, std::size_t policy) {
    const auto ops = static_cast<std::int64_t>(graph_->ops), tensors = static_cast<std::int64_t>(graph_->value.size());
    Terms &along = along_[policy], &against = against_[policy];
    Tensor matrices_along, matrices_against;
    if (tensors > 0) {
      find_pieces(gnn, 0, along);
      find_pieces(gnn, 1, against);
      matrices_along = edge_matrices(gnn, 0, along);
      matrices_against = edge_matrices(gnn, 1, against);
    }
    Tensor h = torch::relu(map(features_, gnn[0], gnn[1]));
    for (std::size_t round = 0; round < kPaperRounds; ++round) {
      Tensor sum = torch::zeros({ops, kWidth});
      if (tensors > 0) {
        const Tensor forth = MultiplyByPiece::apply(h.index_select(0, producer_), matrices_along, &along);
        const Tensor readers =
            torch::zeros({tensors, kWidth}).index_add(0, edge_tensor_, h.index_select(0, edge_consumer_));
        const Tensor back = MultiplyByPiece::apply(readers, matrices_against, &against);
        sum = sum.index_add(0, edge_consumer_, forth.index_select(0, edge_tensor_)).index_add(0, producer_, back);
      }
      h = gated(gnn, torch::relu(sum + gnn[6]), h);
    }
    return leaky(h);
  }

  // The GRU.
  static Tensor gated(const std::vector<Tensor>& gnn, const Tensor& input, const Tensor& state) {
    const auto from_input = map(input, gnn[7], gnn[9]).chunk(3, 1),
               from_state = map(state, gnn[8], gnn[10]).chunk(3, 1);
    const Tensor reset = torch::sigmoid(from_input[0] + from_state[0]);
    const Tensor update = torch::sigmoid(from_input[1] + from_state[1]);
    const Tensor fresh = torch::tanh(from_input[2] + reset * from_state[2]);
    return fresh + update * (state - fresh);
  }

  Tensor scores(const Tensor& h) const {
    const Tensor z = leaky(map(features_, sel_[0], sel_[1]));
    const Tensor exit = standardised(PathSum::apply(h, &to_exit_)), entry = standardised(PathSum::apply(h, &to_entry_));
    const Tensor hidden = leaky(map(torch::cat({z, h, exit, entry}, 1), sel_[2], sel_[3]));
    const Tensor raw = (hidden * sel_[4]).sum(1) + sel_[5].squeeze();
    return kScoreLimit * torch::tanh(raw / kScoreLimit);
  }

  float *parameters_, *gradients_;  // Where the next block begins while they are cut into views.
  std::vector<Tensor> sel_gnn_, sel_, plc_gnn_, plc_;

  // What the last embed() left for backward().
  const PaperGraph* graph_ = nullptr;
  Tensor features_, producer_, edge_tensor_, edge_consumer_;
  Path to_exit_, to_entry_;
  Terms along_[2], against_[2];  // For SEL and for PLC.
  Tensor score_, current_, placed_;
};

std::size_t parameter_count() {
  std::size_t count =
      HeadShape{.width = kPaperHead, .features = kPaperDeviceFeatures.size(), .hidden = kPaperWidth}.size();
  for (const PaperBlock& block : kPaperGnn) count += 2 * block.size();
  for (const PaperBlock& block : kPaperSel) count += block.size();
  for (const PaperBlock& block : kPaperPlc) count += block.size();
  return count;
}

}  // namespace
}  // namespace doppler

extern "C" doppler::PaperTorch* doppler_make_paper_engine(float* parameters, float* gradients, std::size_t size) {
  if (size != doppler::parameter_count()) return nullptr;
  // One core each: several trainings run side by side, and results must not depend on the number of cores.
  at::set_num_threads(1);
  return new doppler::TorchNetworks(parameters, gradients);
}

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <frugal/model/structured.hpp>
#include <frugal/models/bert.hpp>
#include <frugal/models/llama.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/running.hpp"

namespace frugal_test::model_structured {

using namespace frugal_test::support;
using frugal::Auto;
using frugal::CutReport;
using frugal::KeepShare;
using frugal::prune_structured;
using frugal::RankBy;
using frugal::RoundTo;
using frugal::Structured;
using frugal::Where;
using frugal::models::Bert;
using frugal::models::BertLayerImpl;
using frugal::models::BertOptions;
using frugal::models::Llama;
using frugal::models::LlamaLayerImpl;
using frugal::models::LlamaOptions;
namespace nn = torch::nn;

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1,
                bool bias = true, std::int64_t groups = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel)
                        .stride(stride)
                        .padding(kernel / 2)
                        .bias(bias)
                        .groups(groups));
}

struct BlockImpl : nn::Module {
  BlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", conv(in, out, 3, stride, false))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        conv2(register_module("conv2", conv(out, out, 3, 1, false))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {
    if (in != out) shorter = register_module("short", conv(in, out, 1, stride));
  }
  at::Tensor forward(at::Tensor const& x) {
    at::Tensor const y = bn2(conv2(bn1(conv1(x)).relu()));
    return (y + (shorter.is_empty() ? x : shorter(x))).relu();
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d shorter{nullptr};
};
TORCH_MODULE(Block);

/// The networks of tests/reference/make_structured.py.
struct ResNet : nn::Module {
  at::Tensor forward(at::Tensor const& x) {
    return head(second(first(norm(stem(x)).relu())).flatten(1));
  }
  nn::Conv2d stem = register_module("stem", conv(3, 8, 3));
  nn::BatchNorm2d norm = register_module("norm", nn::BatchNorm2d(8));
  Block first = register_module("first", Block(8, 8, 1));
  Block second = register_module("second", Block(8, 16, 2));
  nn::Linear head = register_module("head", nn::Linear(16 * 4 * 4, 5));
};

struct Mobile : nn::Module {
  at::Tensor forward(at::Tensor const& image) {
    at::Tensor const x = stem(image);
    at::Tensor y = at::relu6(wide_norm(wide(x)));
    y = at::relu6(depth_norm(depth(y)));
    return head((x + narrow(y)).mean(at::IntArrayRef{2, 3}));
  }
  nn::Conv2d stem = register_module("stem", conv(3, 8, 3, 2));
  nn::Conv2d wide = register_module("wide", conv(8, 24, 1));
  nn::BatchNorm2d wide_norm = register_module("wide_norm", nn::BatchNorm2d(24));
  nn::Conv2d depth = register_module("depth", conv(24, 24, 3, 1, true, 24));
  nn::BatchNorm2d depth_norm = register_module("depth_norm", nn::BatchNorm2d(24));
  nn::Conv2d narrow = register_module("narrow", conv(24, 8, 1));
  nn::Linear head = register_module("head", nn::Linear(8, 5));
};

/// Fills a module as the script does.
void fill(nn::Module& module, std::uint32_t stream) {
  at::NoGradGuard const no_gradients;
  std::set<at::TensorImpl const*> norms;
  module.apply([&](nn::Module& part) {
    if (auto const* norm = part.as<nn::BatchNorm2d>()) {
      norms.insert(norm->weight.unsafeGetTensorImpl());
    }
  });
  std::uint32_t n = 0;
  for (at::Tensor& each : module.parameters()) {
    at::Tensor const value = table(each.sizes().vec(), stream, n++);
    each.copy_(norms.contains(each.unsafeGetTensorImpl()) ? 1 + 0.25 * value : 0.5 * value);
  }
  std::uint32_t means = 0;
  std::uint32_t variances = 0;
  for (auto& item : module.named_buffers()) {
    at::Tensor& each = item.value();
    if (item.key().ends_with("mean")) {
      each.copy_(0.25 * table(each.sizes().vec(), stream, 100 + means++));
    } else if (item.key().ends_with("var")) {
      each.copy_(1 + 0.5 * table(each.sizes().vec(), stream, 200 + variances++));
    }
  }
  module.eval();
}

at::Tensor image() { return table({2, 3, 8, 8}, 80, 0); }

template <class Net>
void follows(Json const& which) {
  auto const net = std::make_shared<Net>();
  fill(*net, which.at("stream"));
  std::string const rank = which.at("rank");
  Structured<KeepShare<0.5>> const options{.keep = which.at("keep"),
                                           .rank = rank == "l2"   ? RankBy::l2
                                                   : rank == "l1" ? RankBy::l1
                                                                  : RankBy::batch_norm_scale};
  CutReport const report = prune_structured(*net, image(), options);
  CAPTURE(report);
  for (auto const& item : net->named_parameters()) {
    CAPTURE(item.key());
    CHECK(item.value().sizes() == at::IntArrayRef(shape_in(which.at("shapes").at(item.key()))));
    CHECK(item.value().sum().template item<double>() ==
          doctest::Approx(which.at("sums").at(item.key()).template get<double>()).epsilon(1e-4));
  }
  at::NoGradGuard const no_gradients;
  at::Tensor const output = net->forward(image());
  CHECK(distance(output, tensor_in(which.at("output"), output.sizes().vec(), at::kDouble)) < 1e-4);
}

TEST_CASE("the channels of a residual and of a depthwise network go as torch-pruning takes them") {
  Json const file = reference("structured.json");
  for (Json const& which : file.at("cases")) {
    std::string const name = which.at("name");
    CAPTURE(name);
    if (which.at("network") == "ResNet") {
      follows<ResNet>(which);
    } else {
      follows<Mobile>(which);
    }
  }
}

/// Which of the values are left in a cut vector; they are all different.
at::Tensor kept_of(at::Tensor const& before, at::Tensor const& after) {
  return at::isin(before, after);
}

TEST_CASE("the output is that of the module whose removed channels are masked") {
  ResNet whole;
  ResNet cut;
  fill(whole, 86);
  fill(cut, 86);
  auto const report = prune_structured(cut, image(), Structured<KeepShare<0.6>>{});
  CHECK(report.parameters_after < report.parameters_before);
  at::NoGradGuard const no_gradients;
  at::Tensor const stem = kept_of(whole.norm->weight, cut.norm->weight);
  at::Tensor const first = kept_of(whole.first->bn1->weight, cut.first->bn1->weight);
  at::Tensor const second = kept_of(whole.second->bn1->weight, cut.second->bn1->weight);
  at::Tensor const last = kept_of(whole.second->bn2->weight, cut.second->bn2->weight);
  CHECK(stem.sum().item<std::int64_t>() == 4);
  CHECK(last.sum().item<std::int64_t>() == 9);
  auto const mask = [](at::Tensor const& weight, at::Tensor const& kept) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(weight.dim()), 1);
    shape[1] = -1;
    at::Tensor(weight).mul_(kept.view(shape));
  };
  mask(whole.first->conv1->weight, stem);
  mask(whole.second->conv1->weight, stem);
  mask(whole.second->shorter->weight, stem);
  mask(whole.first->conv2->weight, first);
  mask(whole.second->conv2->weight, second);
  // The head takes each channel's 16 places.
  mask(whole.head->weight, last.repeat_interleave(16));
  CHECK(distance(whole.forward(image()), cut.forward(image())) < 1e-5);
  CHECK(distance(whole.forward(image()).select(0, 0), whole.forward(image()).select(0, 1)) > 1e-3);
}

TEST_CASE("layers print and compute with their new widths, and train") {
  auto const net = std::make_shared<Mobile>();
  fill(*net, 87);
  at::Tensor const weight = net->wide->weight;
  net->train();
  net->wide->weight.mutable_grad() = at::ones_like(weight);
  static_cast<void>(prune_structured(*net, image(), Structured<KeepShare<0.5>>{}));
  CHECK(net->is_training());
  CHECK(net->stem->options.out_channels() == 4);
  CHECK(net->depth->options.in_channels() == 12);
  CHECK(net->depth->options.out_channels() == 12);
  CHECK(net->depth->options.groups() == 12);
  CHECK(net->wide_norm->options.num_features() == 12);
  CHECK(net->wide_norm->running_mean.size(0) == 12);
  CHECK(net->head->options.in_features() == 4);
  std::ostringstream text;
  text << *net;
  CHECK(text.str().find("Conv2d(12, 12, kernel_size=[3, 3]") != std::string::npos);
  // The parameter is the same one.
  CHECK(weight.is_same(net->wide->weight));
  CHECK_FALSE(net->wide->weight.grad().defined());
  auto const before = tensors_of(*net);
  frugal::Trainer trainer{net, frugal::CrossEntropy{}, frugal::Settings{.epochs = 2},
                          frugal::Optimize<frugal::SGD>{.lr = 0.1}};
  trainer.fit(frugal::TensorDataset({table({8, 3, 8, 8}, 88, 0), at::arange(8) % 5}, {.batch = 4}));
  for (auto const& [name, tensor] : tensors_of(*net)) {
    CAPTURE(name);
    // A bias in front of a BatchNorm has no effect.
    if (name == "wide.bias" || name == "depth.bias") continue;
    CHECK_FALSE(at::equal(tensor, before.at(name)));
  }
}

TEST_CASE("widths are rounded up to what fills a vector") {
  nn::Sequential net(nn::Linear(4, 64), nn::ReLU(), nn::Linear(64, 20), nn::ReLU(),
                     nn::Linear(20, 3));
  auto const report =
      prune_structured(net, at::ones({2, 4}), Structured<KeepShare<0.6>, RoundTo<16>>{});
  REQUIRE(report.rows.size() == 2);
  CHECK(report.rows[0].layers == "0.weight");
  CHECK(report.rows[0].after == 48);  // 38 are wanted
  CHECK(report.rows[1].after == 16);  // 12 are wanted
  nn::Sequential other(nn::Linear(4, 64), nn::ReLU(), nn::Linear(64, 3));
  static_cast<void>(
      prune_structured(other, at::ones({2, 4}), Structured<KeepShare<0.3>, RoundTo<Auto>>{}));
  std::int64_t const width = other->ptr<nn::LinearImpl>(0)->weight.size(0);
  std::int64_t const vector = frugal::detail::vector_width(at::ones({1}));
  CHECK(vector >= 4);
  CHECK(width % vector == 0);
  CHECK(width >= 19);
  CHECK(width < 19 + vector);
  // Nothing remains to be cut, which is no error.
  auto const whole =
      prune_structured(other, at::ones({2, 4}), Structured<KeepShare<0.99>, RoundTo<64>>{});
  CHECK(whole.parameters_after == whole.parameters_before);
  CHECK(whole.rows[0].why == "the width that remains is rounded up to all of them");
}

CutReport cut_encoder(Bert& encoder, at::Tensor const& ids, at::Tensor const& mask) {
  return prune_structured(
      encoder, [&](Bert& it) { return it(ids, mask); }, Structured<KeepShare<0.5>, RoundTo<4>>{});
}

TEST_CASE("heads of an attention and the units between its layers go, and the residual stays") {
  Bert encoder(BertOptions{
      .vocabulary = 31, .width = 16, .layers = 2, .heads = 4, .intermediate = 24, .positions = 8});
  at::Tensor const ids = at::arange(1, 13).view({2, 6});
  at::Tensor const mask = at::ones({2, 6}, at::kLong);
  CutReport const report = cut_encoder(encoder, ids, mask);
  CAPTURE(report);
  auto const& layer = encoder->encoder->layers->ptr<BertLayerImpl>(1);
  // 2 of 4 heads, of width 4.
  CHECK((layer->attention->self->query->weight.sizes() == at::IntArrayRef{8, 16}));
  CHECK((layer->attention->self->value->bias.sizes() == at::IntArrayRef{8}));
  CHECK((layer->attention->output->dense->weight.sizes() == at::IntArrayRef{16, 8}));
  CHECK((layer->intermediate->dense->weight.sizes() == at::IntArrayRef{12, 16}));
  CHECK((layer->output->dense->weight.sizes() == at::IntArrayRef{16, 12}));
  bool named = false;
  for (auto const& row : report.rows) {
    if (row.before != 16) continue;
    named = true;
    CHECK(row.after == 16);
    CHECK(row.why == "layer_norm has statistics over it");
    CHECK(row.layers.find("word_embeddings") != std::string::npos);
  }
  CHECK(named);
}

TEST_CASE(
    "grouped heads go with the heads of keys that they look at, and gates with their values") {
  Llama llama(LlamaOptions{.vocabulary = 31,
                           .width = 16,
                           .layers = 1,
                           .heads = 8,
                           .key_value_heads = 4,
                           .intermediate = 24,
                           .head = 6});
  at::Tensor const ids = at::arange(1, 13).view({2, 6});
  CutReport const report = prune_structured(llama, ids, Structured<KeepShare<0.5>>{});
  CAPTURE(report);
  auto const& layer = llama->model->layers->ptr<LlamaLayerImpl>(0);
  CHECK((layer->attention->query->weight.sizes() == at::IntArrayRef{24, 16}));
  CHECK((layer->attention->key->weight.sizes() == at::IntArrayRef{12, 16}));
  CHECK((layer->attention->output->weight.sizes() == at::IntArrayRef{16, 24}));
  CHECK((layer->mlp->gate->weight.sizes() == at::IntArrayRef{12, 16}));
  CHECK((layer->mlp->up->weight.sizes() == at::IntArrayRef{12, 16}));
  CHECK((layer->mlp->down->weight.sizes() == at::IntArrayRef{16, 12}));
}

/// Two layers, and what a test does between them.
struct Between : nn::Module {
  explicit Between(std::function<at::Tensor(at::Tensor const&)> between, std::int64_t taken = 8)
      : second(register_module("second", nn::Linear(taken, 6))), do_between(std::move(between)) {}
  at::Tensor forward(at::Tensor const& x) { return third(second(do_between(first(x))).relu()); }
  nn::Linear first = register_module("first", nn::Linear(5, 8));
  nn::Linear second;
  nn::Linear third = register_module("third", nn::Linear(6, 2));
  std::function<at::Tensor(at::Tensor const&)> do_between;
};

/// Why the first layer stays whole; the second one is cut all the same.
std::string why(std::function<at::Tensor(at::Tensor const&)> between, std::int64_t taken = 8) {
  Between net(std::move(between), taken);
  at::Tensor const x = table({3, 5}, 89, 0);
  auto const before = tensors_of(net);
  auto const report = prune_structured(net, x, Structured<KeepShare<0.5>>{});
  std::string found = "not in the report";
  for (auto const& row : report.rows) {
    if (row.layers == "first.weight") found = row.why;
  }
  if (!found.empty()) {
    CHECK(at::equal(net.first->weight, before.at("first.weight")));
    CHECK(at::equal(net.first->bias, before.at("first.bias")));
    CHECK(net.second->options.in_features() == taken);
  }
  CHECK(net.second->options.out_features() == 3);
  return found;
}

TEST_CASE("a group that cannot be traced stays whole, and the report says why") {
  CHECK(why([](at::Tensor const& x) { return x; }).empty());
  CHECK(why([](at::Tensor const& x) { return at::cat({x, x}, 1); }, 16) ==
        "aten::cat joins it with another");
  CHECK(why([](at::Tensor const& x) { return x.cumsum(1); }) == "aten::cumsum is not traced");
  CHECK(why([](at::Tensor const& x) { return x.softmax(1); }) == "softmax goes over it");
  CHECK(why([](at::Tensor const& x) { return x - x.mean(1, true); }) == "aten::mean goes over it");
  CHECK(why([](at::Tensor const& x) { return x.narrow(1, 0, 4); }, 4) ==
        "aten::narrow takes a part of it");
  CHECK(why([](at::Tensor const& x) { return x + at::arange(8); }) == "aten::arange is not traced");
  CHECK(why([](at::Tensor const& x) { return at::layer_norm(x, {8}); }) ==
        "layer_norm has statistics over it");
  CHECK(why([](at::Tensor const& x) { return at::matmul(x, x.t()); }, 3) ==
        "a product takes it with what is no weight");
  // The number of columns is written into the forward pass.
  CHECK(why([](at::Tensor const& x) {
          return x.view({3, 8}) * 2;
        }).starts_with("without them the forward pass fails: "));
  // A forward pass that checks it itself.
  CHECK(why([](at::Tensor const& x) {
          if (x.size(1) != 8) throw std::invalid_argument("8 columns are needed");
          return x;
        }) == "without them the forward pass fails: 8 columns are needed");
  CHECK(why([](at::Tensor const& x) { return x.size(1) == 8 ? x : x * 2; }) ==
        "without them the output is not that of the masked module");
}

TEST_CASE("operators that leave channels as they are do not stand in the way") {
  CHECK(why([](at::Tensor const& x) { return x.sigmoid() * x.detach(); }).empty());
  CHECK(why([](at::Tensor const& x) {
          at::Tensor y = x.clone();
          return y.mul_(2).add_(1).clamp_min_(0);
        }).empty());
  CHECK(why([](at::Tensor const& x) { return x.unsqueeze(0).transpose(0, 1).squeeze(1); }).empty());
  CHECK(why([](at::Tensor const& x) { return x.view({3, -1, 1}).flatten(1); }).empty());
  CHECK(why([](at::Tensor const& x) {
          return x + at::zeros_like(x).masked_fill(x > 0, 1.0);
        }).empty());
  CHECK(why([](at::Tensor const& x) { return at::square(x); }).empty());
  // Both halves of a fused layer lose the same.
  CHECK(why(
            [](at::Tensor const& x) {
              auto const halves = x.chunk(2, 1);
              return halves[0].sigmoid() * halves[1];
            },
            4)
            .empty());
}

TEST_CASE("grouped convolutions keep their channels") {
  nn::Sequential net(conv(3, 8, 3), nn::Conv2d(conv(8, 8, 3, 1, true, 2)), conv(8, 6, 1),
                     conv(6, 4, 1));
  auto const report = prune_structured(net, image(), Structured<KeepShare<0.5>>{});
  CHECK(net->ptr<nn::Conv2dImpl>(0)->weight.size(0) == 8);
  CHECK(net->ptr<nn::Conv2dImpl>(2)->weight.size(0) == 3);
  CHECK(report.rows.front().layers == "0.weight");
  CHECK(report.rows.front().why == "a convolution has 2 groups");
}

TEST_CASE("patterns choose the layers, and those that depend on others are not cut alone") {
  ResNet net;
  fill(net, 90);
  auto const report =
      prune_structured(net, image(), Structured<KeepShare<0.5>, Where<"first.*">>{});
  CAPTURE(report);
  CHECK(net.first->conv1->weight.size(0) == 4);
  CHECK(net.first->conv2->weight.size(0) == 8);
  CHECK(net.second->conv1->weight.size(0) == 16);
  bool named = false;
  for (auto const& row : report.rows) {
    named = named || row.why == "the patterns leave out some of these layers";
  }
  CHECK(named);
}

TEST_CASE(
    "nothing to cut, a wrong pattern and a share out of range are errors, and change nothing") {
  auto const refused = [](auto const& options) -> std::string {
    Between net([](at::Tensor const& x) { return x.cumsum(1); });
    auto const before = tensors_of(net);
    std::string what;
    try {
      static_cast<void>(prune_structured(net, at::ones({3, 5}), options));
    } catch (frugal::Error const& error) {
      what = error.fault().what + ": " + error.fault().why;
    }
    CHECK(same_bits(tensors_of(net), before));
    return what;
  };
  CHECK(refused(Structured<KeepShare<0.5>, Where<"first.*">>{}) ==
        "no channel and no head of this module can be removed: first.weight: aten::cumsum is not "
        "traced");
  CHECK(refused(Structured<KeepShare<0.5>, Where<"thrid.*">>{})
            .starts_with("the pattern 'thrid.*' matches nothing"));
  CHECK(refused(Structured<KeepShare<0.5>>{.keep = 1})
            .starts_with("Structured keeps a share of 1.0"));
  CHECK(refused(Structured<KeepShare<0.5>>{.rank = RankBy::batch_norm_scale})
            .find("there is no BatchNorm to rank by") != std::string::npos);
  nn::Linear alone(3, 4);
  CHECK_THROWS_AS(
      static_cast<void>(prune_structured(alone, at::ones({1, 3}), Structured<KeepShare<0.5>>{})),
      frugal::ModuleError);
}

TEST_CASE("a cut is compared as closely if the outputs are small") {
  torch::manual_seed(90);
  Between net([](at::Tensor const& x) { return x / x.size(1); });
  {
    at::NoGradGuard const no_gradients;
    for (at::Tensor& each : net.third->parameters()) each.mul_(1e-6);
  }
  auto const report = prune_structured(net, table({3, 5}, 89, 0), Structured<KeepShare<0.5>>{});
  // Half of the columns would be divided by half as much.
  for (auto const& row : report.rows) {
    if (row.layers != "first.weight") continue;
    CHECK(row.after == 8);
    CHECK(row.why == "without them the output is not that of the masked module");
  }
  CHECK(net.second->weight.size(0) == 3);
}

TEST_CASE("a tied weight is cut, and counted, once") {
  struct Twice : nn::Module {
    at::Tensor forward(at::Tensor const& x) { return last(second(first(x).relu()).relu()); }
    nn::Linear first = register_module("first", nn::Linear(8, 8));
    nn::Linear second = register_module("second", nn::Linear(8, 8));
    nn::Linear last = register_module("last", nn::Linear(8, 2));
  };
  Twice net;
  net.second->weight = net.first->weight;
  auto const report = prune_structured(
      net, [](Twice& module) { return module.last(module.first(at::ones({3, 8})).relu()); },
      Structured<KeepShare<0.5>>{});
  // first.weight and its bias, second's bias, last.
  CHECK(report.parameters_before == 64 + 8 + 8 + 16 + 2);
}

}  // namespace frugal_test::model_structured

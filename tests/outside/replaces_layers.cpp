// SPDX-License-Identifier: Apache-2.0
// LoRA as a user writes it: each Linear becomes W x + B A x, with W frozen and A and B trained. Hu
// et al., "LoRA: low-rank adaptation of large language models" (2021). Shapes: I inputs, O outputs
// of a layer, R the rank, N samples.
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/files.hpp"
#include "support/running.hpp"

#include <memory>
#include <stop_token>
#include <string>

namespace frugal_test::outside_replaces_layers {

namespace fr = frugal;
using namespace support;

struct LowRank : torch::nn::Module {
  LowRank(std::shared_ptr<torch::nn::LinearImpl> linear, std::int64_t rank, std::uint32_t stream)
      : frozen(register_module("frozen", std::move(linear))) {
    for (at::Tensor& each : frozen->parameters()) each.set_requires_grad(false);
    std::int64_t const inputs = frozen->options.in_features();
    // LibTorch's generators are seeded from Settings::seed only after this.
    a_RI = register_parameter("A", table({rank, inputs}, 95, stream));
    b_OR = register_parameter("B", at::zeros({frozen->options.out_features(), rank}));
  }
  at::Tensor forward(at::Tensor const& x_NI) {
    return frozen->forward(x_NI) + x_NI.matmul(a_RI.t()).matmul(b_OR.t());
  }

  std::shared_ptr<torch::nn::LinearImpl> frozen;
  at::Tensor a_RI, b_OR;
};

/// For a Sequential, whose layers a policy can access.
struct Adapt {
  struct kind : fr::optional_kind {
    static constexpr std::string_view name = "outside.Adapt";
  };
  using listens = fr::list<fr::on::module>;

  std::int64_t rank = 2;

  class State {
   public:
    using transient = void;
    explicit State(Adapt const& settings) : rank_(settings.rank) {}

    // [begin hook]
    void on_module(fr::ModuleSetup& phase) {
      auto& layers = phase.module_as<torch::nn::SequentialImpl>();
      std::uint32_t index = 0;
      for (torch::nn::AnyModule& layer : layers) {
        std::string const name = std::to_string(index++);
        // A second fit of this trainer finds it replaced already.
        auto linear = std::dynamic_pointer_cast<torch::nn::LinearImpl>(layer.ptr());
        if (!linear) continue;
        auto const adapted = std::make_shared<LowRank>(linear, rank_, index);
        layer = torch::nn::AnyModule(adapted);
        layers.replace_module(name, adapted);
      }
    }
    // [end hook]

   private:
    std::int64_t rank_;
  };
};

torch::nn::Sequential network() {
  torch::nn::Sequential net(torch::nn::Linear(6, 8), torch::nn::ReLU(), torch::nn::Linear(8, 3));
  at::NoGradGuard const no_gradients;
  std::uint32_t which = 0;
  for (at::Tensor& each : net->parameters()) each.copy_(table(each.sizes().vec(), 90, which++));
  return net;
}

bool is_trained(std::string const& name) { return name.ends_with(".A") || name.ends_with(".B"); }

TEST_CASE("a policy replaces layers: only its parameters are trained, and have optimizer state") {
  auto const net = network();
  auto const before = tensors_of(*net);
  std::map<std::uint64_t, Frozen> saved;
  fr::Trainer trainer{net,
                      fr::CrossEntropy{},
                      fr::Settings{.epochs = 2},
                      fr::Optimize<fr::AdamW>{.lr = 1e-2},
                      Adapt{},
                      Resume{.after_step = &saved}};
  fr::TensorDataset train(samples(44), {.batch = 4});
  CHECK(trainer.fit(train).steps == 22);

  auto const after = tensors_of(*net);
  REQUIRE(after.size() == 8);
  for (std::string const layer : {"0", "2"}) {
    CAPTURE(layer);
    CHECK(at::equal(after.at(layer + ".frozen.weight"), before.at(layer + ".weight")));
    CHECK(at::equal(after.at(layer + ".frozen.bias"), before.at(layer + ".bias")));
    CHECK(after.at(layer + ".A").sizes() == at::IntArrayRef({2, layer == "0" ? 6 : 8}));
    CHECK(at::any(after.at(layer + ".B") != 0).item<bool>());
    CHECK_FALSE(at::equal(after.at(layer + ".A"), saved.at(1).module.at(layer + ".A")));
  }
  std::size_t moments = 0;
  for (auto const& [path, tensor] : saved.at(22).run.tensors) {
    if (path.find("policies/Optimize/") != 0) continue;
    CAPTURE(path);
    std::string const parameter = path.substr(0, path.rfind('/'));
    CHECK(is_trained(parameter));
    ++moments;
  }
  CHECK(moments >= 8);  // two for each of four
}

TEST_CASE("a second fit of the trainer continues with the layers of the first") {
  auto const net = network();
  fr::Trainer trainer{net, fr::CrossEntropy{}, fr::Settings{.epochs = 1},
                      fr::Optimize<fr::SGD>{.lr = 0.1}, Adapt{}};
  fr::TensorDataset train(samples(44), {.batch = 4});
  double const first = trainer.fit(train).train_loss;
  CHECK(trainer.fit(train).train_loss < first);
  CHECK(tensors_of(*net).size() == 8);
}

TEST_CASE("the range test sweeps the policy's parameters, and restores them") {
  auto const swept = network();
  fr::TensorDataset train(samples(44), {.batch = 4});
  auto const trainer_of = [](torch::nn::Sequential const& net) {
    return fr::Trainer{net, fr::CrossEntropy{}, fr::Settings{.epochs = 1},
                       fr::Optimize<fr::SGD>{.lr = 0.1}, Adapt{}};
  };
  auto trainer = trainer_of(swept);
  fr::RateCurve const curve = fr::find_learning_rate(trainer, train, {.steps = 20});
  CHECK(curve.points.size() > 5);
  auto const net = network();
  auto other = trainer_of(net);
  other.settings().steps = 0;
  static_cast<void>(other.fit(train));
  CHECK(same_bits(tensors_of(*swept), tensors_of(*net)));
}

TEST_CASE("a resumed run builds its layers again and continues with the same bits") {
  TemporaryFolder const folder;
  auto const run = [&](std::string const& name, int leave_at) {
    std::stop_source stop;
    int count = 0;
    auto const net = network();
    auto const objective = [&](torch::nn::Sequential& module, fr::Batch const& batch) {
      if (++count == leave_at) stop.request_stop();
      return fr::CrossEntropy{}(module, batch);
    };
    fr::Trainer trainer{
        net,
        objective,
        fr::Settings{.run_dir = folder / name, .epochs = 2, .seed = 3, .stop = stop.get_token()},
        fr::Optimize<fr::AdamW>{.lr = 1e-2},
        Adapt{},
        fr::Checkpoint<fr::Every<100>>{}};
    fr::TensorDataset train(samples(44), {.batch = 4, .shuffle = true});
    fr::Report const report = trainer.fit(train);
    CHECK(report.preempted == (leave_at != 0));
    return tensors_of(*net);
  };
  auto const whole = run("whole", 0);
  for (int at : {1, 7, 11, 15}) {
    CAPTURE(at);
    run(std::to_string(at), at);
    CHECK(same_bits(run(std::to_string(at), 0), whole));
  }
}

TEST_CASE("a policy that expects a module of another class is told both") {
  fr::Settings const settings;
  torch::nn::Linear module(2, 2);
  fr::RunState run{.root = *module, .settings = settings};
  fr::ModuleSetup const phase(run);
  CHECK(&phase.module_as<torch::nn::LinearImpl>() == module.get());
  CHECK_THROWS_WITH_AS(
      phase.module_as<torch::nn::SequentialImpl>(),
      doctest::Contains("another class than a policy expects (torch::nn::SequentialImpl): it is "
                        "torch::nn::LinearImpl"),
      fr::ModuleError);
}

}  // namespace frugal_test::outside_replaces_layers

// SPDX-License-Identifier: Apache-2.0
// Shapes: B samples, F features, C classes.
#include <doctest/doctest.h>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <frugal/policy/accumulate.hpp>
#include <frugal/policy/early_stop.hpp>
#include <frugal/policy/optimize.hpp>
#include <frugal/trainer.hpp>

#include "stand_ins.hpp"

#include <limits>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

namespace frugal_test::loop_fit {

using namespace frugal_test::loop;
using NetPtr = std::shared_ptr<Net>;
using Sgd = Optimize<SGD>;

NetPtr new_net() { return std::make_shared<Net>(5); }

/// A hand-written loop, with one big batch per step.
struct ByHand {
  NetPtr net = new_net();
  double lr = 0.1;

  void step(std::vector<Batch> const& window) {
    double total = 0;
    for (Batch const& batch : window) total += static_cast<double>(batch.data.size(0));
    for (Batch const& batch : window) {
      at::Tensor const loss = at::cross_entropy_loss(net->forward(batch.data), batch.target);
      if (window.size() == 1) {
        loss.backward();
      } else {
        (loss * (static_cast<double>(batch.data.size(0)) / total)).backward();
      }
    }
    at::NoGradGuard const no_gradients;
    for (at::Tensor& parameter : net->parameters()) {
      parameter.sub_(parameter.grad(), lr);
      parameter.mutable_grad().reset();
    }
  }
};

template <class... Ps>
Report fit_of(NetPtr const& net, Settings const& settings, std::vector<Batch> const& train,
              Ps const&... policies) {
  Trainer trainer(net, CrossEntropy{}, settings, Sgd{.lr = 0.1}, policies...);
  return trainer.fit(train);
}

TEST_CASE("a fit is the hand-written loop, bit for bit") {
  auto const train = batches_of_sizes({8, 8, 5});
  ByHand hand;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (Batch const& batch : train) hand.step({batch});
  }
  NetPtr const net = new_net();
  fit_of(net, {.epochs = 3}, train);
  CHECK(same(copy_of(*net), copy_of(*hand.net)));
}

TEST_CASE("windows of equal micro-batches are the hand-written window, bit for bit") {
  auto const train = batches_of_sizes({8, 8, 8, 8});
  ByHand hand;
  hand.step({train[0], train[1]});
  hand.step({train[2], train[3]});
  NetPtr const net = new_net();
  Report const report = fit_of(net, {}, train, Accumulate<2>{});
  CHECK(report.steps == 2);
  CHECK(same(copy_of(*net), copy_of(*hand.net)));
}

TEST_CASE("ragged and unequal windows are the step of one big batch, to rounding") {
  auto const train = batches_of_sizes({8, 3, 6, 7, 1});
  auto const joined = [&](std::size_t from, std::size_t to) {
    std::vector<at::Tensor> data, target;
    for (std::size_t i = from; i < to; ++i) {
      data.push_back(train[i].data);
      target.push_back(train[i].target);
    }
    return Batch{at::cat(data), at::cat(target)};
  };
  ByHand hand;
  hand.step({joined(0, 3)});
  hand.step({joined(3, 5)});
  NetPtr const net = new_net();
  Report const report = fit_of(net, {}, train, Accumulate<3>{});
  CHECK(report.steps == 2);
  CHECK(report.samples == 25);
  auto const ours = copy_of(*net);
  auto const theirs = copy_of(*hand.net);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CHECK((ours[i] - theirs[i]).abs().max().item<double>() < 1e-14);
  }
}

TEST_CASE("validation between steps changes no bit of the training") {
  auto const train = batches_of_sizes({8, 8, 5});
  auto const valid = batches_of_sizes({4, 4});
  NetPtr const alone = new_net();
  NetPtr const watched = new_net();
  fit_of(alone, {.epochs = 2}, train);
  Trainer trainer(watched, CrossEntropy{}, Settings{.epochs = 2}, Sgd{.lr = 0.1},
                  Validate<Every<2>>{});
  Report const report = trainer.fit(train, valid);
  CHECK(report.validations.size() == 3);
  CHECK(same(copy_of(*alone), copy_of(*watched)));
}

TEST_CASE("a validation's loss is the weighted mean over its batches") {
  auto const valid = batches_of_sizes({4, 1, 7});
  NetPtr const net = new_net();
  Trainer trainer(net, CrossEntropy{}, Settings{}, Optimize<Nothing>{});
  Report const report = trainer.fit(batches_of_sizes({8}), valid);
  double sum = 0;
  for (Batch const& batch : valid) {
    sum += at::cross_entropy_loss(net->forward(batch.data), batch.target).item<double>() *
           static_cast<double>(batch.data.size(0));
  }
  CHECK(report.last()["loss"] == doctest::Approx(sum / 12).epsilon(1e-13));
}

TEST_CASE("validating on the training source itself keeps its position") {
  Stream source{batches_of_sizes({8, 8, 8, 8})};
  NetPtr const watched = new_net();
  Trainer trainer(watched, CrossEntropy{}, Settings{.epochs = 2}, Sgd{.lr = 0.1},
                  Validate<Every<1>>{});
  Report const report = trainer.fit(source, source);
  CHECK(report.steps == 8);
  CHECK(report.validations.size() == 8);
  NetPtr const alone = new_net();
  fit_of(alone, {.epochs = 2}, source.batches);
  CHECK(same(copy_of(*alone), copy_of(*watched)));
}

TEST_CASE("a report counts epochs, steps and samples and has the last epoch's mean loss") {
  auto const train = batches_of_sizes({8, 4});
  NetPtr const net = new_net();
  Trainer trainer(net, CrossEntropy{}, Settings{.epochs = 3}, Optimize<Nothing>{});
  Report const report = trainer.fit(train);
  CHECK(report.epochs == 3);
  CHECK(report.steps == 6);
  CHECK(report.samples == 36);
  CHECK(report.seconds >= 0);
  CHECK(report.stopped_by.empty());
  CHECK(report.validations.empty());
  CHECK_THROWS_AS(report.last(), MetricError);
  double const first =
      at::cross_entropy_loss(net->forward(train[0].data), train[0].target).item<double>();
  double const second =
      at::cross_entropy_loss(net->forward(train[1].data), train[1].target).item<double>();
  CHECK(report.train_loss == doctest::Approx((8 * first + 4 * second) / 12).epsilon(1e-13));
}

TEST_CASE("Settings::steps ends a run exactly there, within an epoch or a sequence of windows") {
  auto const train = batches_of_sizes({8, 8, 5});
  Report const report = fit_of(new_net(), {.epochs = 9, .steps = 4}, train);
  CHECK(report.steps == 4);
  CHECK(report.epochs == 1);
  CHECK(report.samples == 29);
  for (Settings const& settings : {Settings{.epochs = 9, .steps = 0}, Settings{.epochs = 0}}) {
    auto const none = fit_of(new_net(), settings, train);
    CHECK(none.steps == 0);
    REQUIRE(none.warnings.size() == 1);
    CHECK(
        says(none.warnings[0], settings.steps ? "Settings::steps is 0" : "Settings::epochs is 0"));
  }
  CHECK(fit_of(new_net(), {.epochs = 1}, train).warnings.empty());
}

TEST_CASE("a negative number of epochs is a warning: it is a run without end") {
  std::stop_source stop;
  stop.request_stop();
  int const all = -1;
  auto const train = batches_of_sizes({8});
  Report const report = fit_of(new_net(), {.epochs = all, .stop = stop.get_token()}, train);
  REQUIRE(report.warnings.size() == 1);
  CHECK(says(report.warnings[0], "Settings::epochs is 18446744073709551615, which is -1"));
  CHECK(fit_of(new_net(), {.epochs = all, .steps = 2}, train).warnings.empty());
}

TEST_CASE("steps without epochs take as many epochs as they need") {
  Report const report = fit_of(new_net(), {.steps = 100}, batches_of_sizes({8, 8, 5}));
  CHECK(report.steps == 100);
  CHECK(report.epochs == 33);
}

TEST_CASE("a run that ends with an epoch's last step has completed the epoch, and validates") {
  auto const train = batches_of_sizes({8, 8, 5});
  Trainer trainer(new_net(), CrossEntropy{}, Settings{.epochs = 9, .steps = 6}, Sgd{});
  Report const report = trainer.fit(train, batches_of_sizes({4}));
  CHECK(report.steps == 6);
  CHECK(report.epochs == 2);
  CHECK(report.validations.size() == 2);
}

TEST_CASE("every epoch is sought with its number and the seed") {
  Stream source{batches_of_sizes({4, 4})};
  Trainer trainer(new_net(), CrossEntropy{}, Settings{.epochs = 3, .seed = 77}, Sgd{});
  static_cast<void>(trainer.fit(source));
  CHECK((source.sought == std::vector<Cursor>{{77, 0, 0}, {77, 1, 0}, {77, 2, 0}}));
}

// Errors: each must say what happened and leave the module unchanged.

template <class E, class Objective>
E refused_fit(NetPtr const& net, Objective objective, std::vector<Batch> const& train) {
  Trainer trainer(net, objective, Settings{}, Sgd{.lr = 0.1});
  auto error = thrown_by<E>([&] { trainer.fit(train); });
  REQUIRE(error);
  return *error;
}

// Checks that the module is unchanged and can still train.
void check_usable(NetPtr const& net, std::vector<at::Tensor> const& before) {
  CHECK(same(copy_of(*net), before));
  for (at::Tensor const& tensor : net->parameters()) CHECK_FALSE(tensor.grad().defined());
  CHECK(net->is_training());
  Report const report = fit_of(net, {}, batches_of_sizes({8, 8}));
  CHECK(report.steps == 2);
  CHECK_FALSE(same(copy_of(*net), before));
}

TEST_CASE("a non-finite loss stops before it reaches the weights, and names its position") {
  auto train = batches_of_sizes({8, 8, 8});
  train[2].data.index_put_({0, 0}, std::numeric_limits<double>::quiet_NaN());
  ByHand hand;
  hand.step({train[0]});
  hand.step({train[1]});
  NetPtr const net = new_net();
  auto const error = refused_fit<NonFiniteLossError>(net, CrossEntropy{}, train);
  CHECK(error.fault().where == "epoch 0, step 2, micro-batch 2");
  check_usable(net, copy_of(*hand.net));
}

TEST_CASE("a bad micro-batch inside a window takes the whole window back") {
  auto train = batches_of_sizes({8, 8, 8});
  train[2].data.fill_(std::numeric_limits<double>::infinity());
  NetPtr const net = new_net();
  auto const before = copy_of(*net);
  Trainer trainer(net, CrossEntropy{}, Settings{}, Sgd{.lr = 0.1}, Accumulate<3>{});
  auto const error = thrown_by<NonFiniteLossError>([&] { trainer.fit(train); });
  REQUIRE(error);
  CHECK(error->fault().where == "epoch 0, step 0, micro-batch 2");
  check_usable(net, before);
}

TEST_CASE("a source without a batch is an EmptySourceError, for training and for validation") {
  Stream empty;
  Stream full{batches_of_sizes({4})};
  NetPtr const net = new_net();
  Trainer trainer(net, CrossEntropy{}, Settings{}, Optimize<Nothing>{});
  auto const before = copy_of(*net);
  auto const train = thrown_by<EmptySourceError>([&] { trainer.fit(empty); });
  REQUIRE(train);
  CHECK(says(train->what(), "the training source has no batch (epoch 0)"));
  auto const valid = thrown_by<EmptySourceError>([&] { trainer.fit(full, empty); });
  REQUIRE(valid);
  CHECK(says(valid->what(), "the validation source has no batch"));
  CHECK_THROWS_AS(trainer.fit(std::vector<Batch>{}), EmptySourceError);
  check_usable(net, before);
}

TEST_CASE("a source that is empty in a later epoch is an error of that epoch") {
  struct Once : Stream {
    void seek(Cursor const& cursor) {
      Stream::seek(cursor);
      if (cursor.epoch > 0) at = batches.size();
    }
  };
  Once source;
  source.batches = batches_of_sizes({4});
  Trainer trainer(new_net(), CrossEntropy{}, Settings{.epochs = 2}, Sgd{});
  auto const error = thrown_by<EmptySourceError>([&] { trainer.fit(source); });
  REQUIRE(error);
  CHECK(error->fault().where == "epoch 1");
}

TEST_CASE("a loss without a graph is a ModuleError") {
  NetPtr const net = new_net();
  auto const before = copy_of(*net);
  auto const error = refused_fit<ModuleError>(
      net, [](NetPtr& m, Batch const& b) { return m->forward(b.data).mean().detach(); },
      batches_of_sizes({8}));
  CHECK(says(error.what(), "the loss depends on no parameter (epoch 0, step 0, micro-batch 0)"));
  check_usable(net, before);
}

TEST_CASE("a loss that is not a single number is a ShapeError with its shape") {
  NetPtr const net = new_net();
  auto const before = copy_of(*net);
  auto const error = refused_fit<ShapeError>(
      net, [](NetPtr& m, Batch const& b) { return m->forward(b.data); }, batches_of_sizes({8}));
  CHECK(says(error.what(), "[8, 3] Double"));
  check_usable(net, before);
}

TEST_CASE("a module that does not fit the data is a ShapeError with the batch's shapes") {
  NetPtr const net = new_net();
  auto const before = copy_of(*net);
  auto const error = refused_fit<ShapeError>(
      net, CrossEntropy{}, {Batch{at::zeros({8, 7}, at::kDouble), at::zeros({8}, at::kLong)}});
  CHECK(says(error.what(), "data [8, 7] Double, target [8] Long"));
  CHECK(error.fault().where == "epoch 0, step 0, micro-batch 0");
  check_usable(net, before);
}

TEST_CASE("a negative weight is a SettingsError") {
  NetPtr const net = new_net();
  auto const before = copy_of(*net);
  refused_fit<SettingsError>(
      net,
      [](NetPtr& m, Batch const& b) {
        return Loss{.value = m->forward(b.data).mean(), .weight = -1};
      },
      batches_of_sizes({8}));
  check_usable(net, before);
}

struct Hollow : torch::nn::Module {
  at::Tensor forward(at::Tensor const& data) { return data; }
};

TEST_CASE(
    "a module without parameters, or with all of them frozen, is a ModuleError that says which") {
  Trainer hollow(std::make_shared<Hollow>(), CrossEntropy{}, Settings{}, Sgd{});
  auto const none = thrown_by<ModuleError>([&] { hollow.fit(batches_of_sizes({8})); });
  REQUIRE(none);
  CHECK(none->fault().why == "it registered none, or all are fixed");
  NetPtr const net = new_net();
  for (at::Tensor& tensor : net->parameters()) tensor.set_requires_grad(false);
  auto const frozen = refused_fit<ModuleError>(net, CrossEntropy{}, batches_of_sizes({8}));
  CHECK(frozen.fault().why == "requires_grad is false on all of them");
}

/// An operation whose backward pass fails.
struct Unbearable : torch::autograd::Function<Unbearable> {
  static at::Tensor forward(torch::autograd::AutogradContext*, at::Tensor const& x) {
    return x.clone();
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext*,
                                               torch::autograd::tensor_list const&) {
    TORCH_CHECK(false, "no way back");
  }
};

TEST_CASE("LibTorch's error in a backward pass is a ModuleError that names the step") {
  NetPtr const net = new_net();
  auto const before = copy_of(*net);
  auto const error = refused_fit<ModuleError>(
      net, [](NetPtr& m, Batch const& b) { return Unbearable::apply(m->forward(b.data)).mean(); },
      batches_of_sizes({8}));
  CHECK(error.fault().what == "the backward pass failed");
  CHECK(error.fault().where == "epoch 0, step 0, micro-batch 0");
  CHECK(says(error.fault().why, "no way back"));
  check_usable(net, before);
}

/// An optimizer that LibTorch refuses.
struct Stuck {
  using kind = kinds::optimizer;
  using listens = list<on::update>;
  struct State {
    using transient = void;
    explicit State(Stuck const&) {}
    void on_update(Update&) { TORCH_CHECK(false, "no way on"); }
  };
};

TEST_CASE("LibTorch's error in an update is a ModuleError that names the step") {
  auto const error = thrown_by<ModuleError>(
      [] { Trainer(new_net(), CrossEntropy{}, Settings{}, Stuck{}).fit(batches_of_sizes({8})); });
  REQUIRE(error);
  CHECK(error->fault().what == "the update failed");
  CHECK(says(error->what(), "no way on"));
}

TEST_CASE("a micro-batch may have zero weight: its loss does not count") {
  auto const train = batches_of_sizes({8, 8});
  NetPtr const weighed = new_net();
  int calls = 0;
  Trainer(
      weighed,
      [&calls](NetPtr& m, Batch const& b) {
        return Loss{.value = at::cross_entropy_loss(m->forward(b.data), b.target),
                    .weight = calls++ == 0 ? 8.0 : 0.0};
      },
      Settings{}, Sgd{.lr = 0.1}, Accumulate<2>{})
      .fit(train);
  NetPtr const alone = new_net();
  fit_of(alone, {}, {train[0]});
  for (std::size_t i = 0; i < alone->parameters().size(); ++i) {
    CHECK(at::allclose(alone->parameters()[i], weighed->parameters()[i], 1e-13, 1e-15));
  }
}

TEST_CASE("an objective's exception reaches the caller, and the module is as after the last step") {
  NetPtr const net = new_net();
  auto const train = batches_of_sizes({8, 8});
  ByHand hand;
  hand.step({train[0]});
  int calls = 0;
  auto const error = refused_fit<std::domain_error>(
      net,
      [&](NetPtr& m, Batch const& b) {
        if (++calls == 2) throw std::domain_error("mine");
        return CrossEntropy{}(m, b);
      },
      train);
  CHECK(std::string(error.what()) == "mine");
  check_usable(net, copy_of(*hand.net));
}

struct ThrowingSource : Stream {
  std::optional<Batch> next() {
    if (at == 1) throw std::domain_error("disk");
    return Stream::next();
  }
};

TEST_CASE("a source's exception reaches the caller, within a window too") {
  NetPtr const net = new_net();
  auto const before = copy_of(*net);
  ThrowingSource source;
  source.batches = batches_of_sizes({8, 8});
  Trainer trainer(net, CrossEntropy{}, Settings{}, Sgd{.lr = 0.1}, Accumulate<2>{});
  CHECK_THROWS_AS(trainer.fit(source), std::domain_error);
  check_usable(net, before);
}

struct ThrowsInBackward {
  using kind = kinds::progress;
  using listens = list<on::backward>;
  struct State {
    explicit State(ThrowsInBackward const&) {}
    void on_backward(Backward const&) { throw std::domain_error("policy"); }
  };
};
struct ThrowsInValidation {
  using kind = kinds::progress;
  using listens = list<around::validate>;
  struct State {
    explicit State(ThrowsInValidation const&) {}
    template <class Next>
    Metrics around_validate(ValidationRun const&, Next&& next) {
      next();
      throw std::domain_error("policy");
    }
  };
};

TEST_CASE("a policy's exception between backward and step leaves weights and gradients clean") {
  NetPtr const net = new_net();
  auto const before = copy_of(*net);
  Trainer trainer(net, CrossEntropy{}, Settings{}, Sgd{.lr = 0.1}, ThrowsInBackward{});
  CHECK_THROWS_AS(trainer.fit(batches_of_sizes({8})), std::domain_error);
  check_usable(net, before);
}

TEST_CASE("an exception in a validation leaves the module in training mode") {
  NetPtr const net = new_net();
  Trainer trainer(net, CrossEntropy{}, Settings{}, Optimize<Nothing>{}, ThrowsInValidation{});
  CHECK_THROWS_AS(trainer.fit(batches_of_sizes({8}), batches_of_sizes({8})), std::domain_error);
  check_usable(net, copy_of(*net));
}

struct Modes : torch::nn::Module {
  Modes() {
    frozen = register_module("frozen", torch::nn::BatchNorm1d(4));
    layer = register_module("layer", torch::nn::Linear(4, 3));
    drop = register_module("drop", torch::nn::Dropout(0.5));
    to(at::kDouble);
  }
  at::Tensor forward(at::Tensor const& data_BF) {
    modes.push_back(std::string(frozen->is_training() ? "T" : "e") +
                    (drop->is_training() ? "T" : "e") + (is_training() ? "T" : "e"));
    return drop->forward(layer->forward(frozen->forward(data_BF)));
  }
  torch::nn::BatchNorm1d frozen{nullptr};
  torch::nn::Linear layer{nullptr};
  torch::nn::Dropout drop{nullptr};
  std::vector<std::string> modes{};
};

TEST_CASE("a submodule in evaluation mode stays there through a validation") {
  auto const net = std::make_shared<Modes>();
  net->frozen->eval();
  at::Tensor const mean = net->frozen->running_mean.clone();
  Trainer trainer(net, CrossEntropy{}, Settings{.epochs = 2}, Sgd{});
  static_cast<void>(trainer.fit(batches_of_sizes({8}), batches_of_sizes({4})));
  CHECK((net->modes == std::vector<std::string>{"eee", "eTT", "eee", "eTT", "eee"}));
  CHECK_FALSE(net->frozen->is_training());
  CHECK(net->drop->is_training());
  CHECK(net->frozen->running_mean.equal(mean));
}

TEST_CASE("a module in evaluation mode is trained in training mode, and is in its own mode again") {
  auto const net = std::make_shared<Modes>();
  net->eval();
  Trainer trainer(net, CrossEntropy{}, Settings{.epochs = 1}, Sgd{});
  static_cast<void>(trainer.fit(batches_of_sizes({8})));
  CHECK((net->modes == std::vector<std::string>{"TTT"}));
  CHECK_FALSE(net->is_training());
  CHECK_FALSE(net->drop->is_training());
}

TEST_CASE("one seed gives two runs with dropout the same result, and another seed another") {
  auto const trained = [](std::uint64_t seed) {
    at::manual_seed(9);
    auto const net = std::make_shared<Modes>();
    at::manual_seed(seed + 1000);  // earlier draws must not matter
    Trainer trainer(net, CrossEntropy{}, Settings{.epochs = 2, .seed = seed}, Sgd{.lr = 0.1});
    static_cast<void>(trainer.fit(batches_of_sizes({8, 8})));
    return copy_of(*net);
  };
  CHECK(same(trained(4), trained(4)));
  CHECK_FALSE(same(trained(4), trained(5)));
}

// The run's length, as policies see it.
struct HorizonNote {
  using kind = kinds::progress;
  using listens = list<on::fit_begin>;
  RunLimits* note = nullptr;
  struct State {
    using transient = void;
    RunLimits* note;
    explicit State(HorizonNote const& settings) : note(settings.note) {}
    flow on_fit_begin(FitBegin& phase) {
      *note = phase.horizon();
      return flow::stop;
    }
  };
};

template <class... Ps, class Source>
RunLimits horizon_of(Settings const& settings, Source&& source, Ps const&... policies) {
  RunLimits horizon;
  Trainer trainer(new_net(), CrossEntropy{}, settings, Sgd{}, HorizonNote{&horizon}, policies...);
  Report const report = trainer.fit(source);
  CHECK(report.steps == 0);
  CHECK(report.stopped_by == "Progress");
  return horizon;
}

TEST_CASE("a run's horizon counts optimizer steps, ragged windows rounded up") {
  auto const train = batches_of_sizes({4, 4, 4, 4, 4});
  CHECK(horizon_of({.epochs = 3}, train).total_steps == 15);
  CHECK(horizon_of({.epochs = 3}, train, Accumulate<2>{}).steps_per_epoch == 3);
  CHECK(horizon_of({.epochs = 3}, train, Accumulate<2>{}).total_steps == 9);
  CHECK(horizon_of({.epochs = 3, .steps = 7}, train).total_steps == 7);
}

TEST_CASE("a source without a size gives a horizon only to a run that counts its steps") {
  Stream const stream{batches_of_sizes({4})};
  CHECK_FALSE(horizon_of({}, Stream(stream)).total_steps.has_value());
  CHECK(horizon_of({.steps = 7}, Stream(stream)).total_steps == 7);
}

TEST_CASE("endless epochs do not overflow the horizon") {
  auto const train = batches_of_sizes({4, 4, 4, 4});
  constexpr std::uint64_t endless = std::uint64_t{1} << 62;
  CHECK(horizon_of({.epochs = endless, .steps = 100}, train).total_steps == 100);
}

}  // namespace frugal_test::loop_fit

// SPDX-License-Identifier: Apache-2.0
#include <frugal/model/distill/teacher.hpp>

#include <doctest/doctest.h>

#include <frugal/core/libtorch/meta_meter.hpp>
#include <frugal/core/source/batch.hpp>
#include <frugal/model/module_identity.hpp>

#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace frugal_test::model_distill_teacher {

using namespace frugal;

torch::nn::Sequential net() {
  torch::manual_seed(3);
  return torch::nn::Sequential(torch::nn::Linear(4, 6), torch::nn::BatchNorm1d(6),
                               torch::nn::Dropout(0.5), torch::nn::Linear(6, 3));
}

Batch batch() { return {torch::ones({5, 4}), torch::zeros({5}, torch::kLong)}; }

TEST_CASE("a teacher is asked in evaluation mode, without a graph, and nothing of it changes") {
  auto module = net();
  module->train();
  auto const state = module_identity(*module);
  module[2]->eval();  // a part of its own mode
  auto const modes = [&] {
    std::vector<bool> all;
    for (auto const& each : module->modules()) all.push_back(each->is_training());
    return all;
  };
  auto const before = modes();
  Teacher const teacher(module);
  CHECK(modes() == before);
  at::Tensor const one = teacher(batch(), at::kCPU);
  CHECK_FALSE(one.requires_grad());
  CHECK(modes() == before);
  module->eval();
  CHECK(teacher(batch(), at::kCPU).equal(one));
  CHECK(module_identity(*module) == state);
  CHECK(module->parameters()[0].requires_grad());
}

TEST_CASE(
    "a teacher's modes are put back also after an error, and by the last of several threads") {
  auto module = net();
  module->train();
  int asked = 0;
  Teacher const failing(module, [&](torch::nn::Sequential& m, at::Tensor const&) -> at::Tensor {
    CHECK_FALSE(m->is_training());
    ++asked;
    throw std::runtime_error("no outputs");
  });
  CHECK_THROWS_WITH_AS(failing(batch(), at::kCPU), "no outputs", std::runtime_error);
  CHECK(asked == 1);
  CHECK(module->is_training());

  // One question ends in the middle of the other.
  std::promise<void> begun, ended;
  bool stays = false;
  Teacher const slow(module, [&](torch::nn::Sequential& m, at::Tensor const& x) {
    begun.set_value();
    ended.get_future().wait();
    stays = !m->is_training();
    return m->forward(x);
  });
  std::thread other([&] { static_cast<void>(slow(batch(), at::kCPU)); });
  begun.get_future().wait();
  at::Tensor const one = Teacher(module)(batch(), at::kCPU);
  ended.set_value();
  other.join();
  CHECK(stays);
  CHECK(one.equal(Teacher(module)(batch(), at::kCPU)));
  CHECK(module->is_training());
}

TEST_CASE("a teacher computes in its own precision, whatever that of the run") {
  auto module = net();
  Teacher const own(module);
  Teacher const cast(module, TeacherOptions{.autocast = at::kBFloat16});
  at::Tensor const plain = own(batch(), at::kCPU);
  CHECK((plain.scalar_type() == at::kFloat));
  CHECK((cast(batch(), at::kCPU).scalar_type() == at::kBFloat16));
  CHECK_FALSE(at::autocast::is_autocast_enabled(at::kCPU));

  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  CHECK(own(batch(), at::kCPU).equal(plain));
  CHECK(at::autocast::is_autocast_enabled(at::kCPU));
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();

  module->to(at::kBFloat16);  // its data are converted
  CHECK((own(batch(), at::kCPU).scalar_type() == at::kBFloat16));
}

TEST_CASE("a teacher takes modules, holders and pointers, and functions of data or of a batch") {
  auto module = net();
  at::Tensor const wanted = Teacher(module)(batch(), at::kCPU);
  CHECK(Teacher(module.ptr())(batch(), at::kCPU).equal(wanted));
  CHECK(Teacher(*module)(batch(), at::kCPU).equal(wanted));
  Teacher const of_data(
      module, [](torch::nn::Sequential& m, at::Tensor const& x) { return m->forward(x); });
  CHECK(of_data(batch(), at::kCPU).equal(wanted));
  Teacher const of_batch(module, [](auto& m, at::Tensor const& x) { return m->forward(x * 1); },
                         {.weight = 2});
  CHECK(of_batch.options().weight == 2);
  CHECK(of_batch(batch(), at::kCPU).equal(wanted));

  using Pair = std::pair<std::vector<at::Tensor>, at::Tensor>;
  Teacher const of_pair(
      module, [](torch::nn::Sequential& m, Pair const& each) { return m->forward(each.first[1]); });
  Pair const pair{{at::zeros({1}), batch().data}, {}};
  CHECK(of_pair(pair, at::kCPU).equal(wanted));
  CHECK_THROWS_AS(of_pair(batch(), at::kCPU), DataError);
  Teacher const of_tensors{module};
  CHECK_THROWS_WITH_AS(of_tensors(pair, at::kCPU), doctest::Contains("second argument"), DataError);
}

TEST_CASE("a plan of memory on shapes alone leaves the teacher its weights") {
  auto module = net();
  auto const state = module_identity(*module);
  Teacher const teacher(module);
  frugal::detail::MetaFallback const fallback;  // as plan_memory installs it, for BatchNorm
  Batch const meta{batch().data.to(at::kMeta), batch().target.to(at::kMeta)};
  CHECK(teacher(meta, at::kMeta).sizes() == at::IntArrayRef{5, 3});
  CHECK(module_identity(*module) == state);
  CHECK(module->parameters()[0].is_cpu());
}

TEST_CASE("the identity has the precision, and the weight must be above 0") {
  auto module = net();
  CHECK(Teacher(module).identity() == module_identity(*module));
  CHECK(Teacher(module, TeacherOptions{.weight = 7}).identity() == module_identity(*module));
  CHECK(Teacher(module, TeacherOptions{.autocast = at::kBFloat16}).identity() ==
        module_identity(*module) + ", autocast BFloat16");
  for (double const weight : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    CHECK_THROWS_AS(Teacher(module, TeacherOptions{.weight = weight}), SettingsError);
  }
  CHECK_THROWS_AS(Teacher(torch::nn::Linear(nullptr)), ModuleError);
}

}  // namespace frugal_test::model_distill_teacher

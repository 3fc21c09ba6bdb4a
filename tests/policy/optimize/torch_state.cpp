// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <frugal/policy/optimize/torch_state.hpp>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace frugal_test::policy_optimize_torch_state {

using frugal::detail::save_by_place;
using Parameters = std::vector<at::Tensor>;

/// Twelve parameters with rising or falling addresses.
Parameters parameters(bool rising) {
  Parameters made;
  for (int i = 0; i < 12; ++i) made.push_back(at::zeros({2}));
  std::sort(made.begin(), made.end(), [&](at::Tensor const& a, at::Tensor const& b) {
    bool const before = a.unsafeGetTensorImpl() < b.unsafeGetTensorImpl();
    return rising ? before : b.unsafeGetTensorImpl() < a.unsafeGetTensorImpl();
  });
  for (at::Tensor& each : made) each.requires_grad_();
  return made;
}

/// One update in which parameter i has the gradient i + 1.
void step(torch::optim::Optimizer& optimizer, Parameters const& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].mutable_grad() = at::full({2}, static_cast<double>(i + 1));
  }
  optimizer.step([] { return at::zeros({}); });
}

std::string bytes_of(torch::optim::Optimizer const& optimizer) {
  torch::serialize::OutputArchive archive;
  save_by_place(optimizer, archive);
  std::ostringstream out;
  archive.save_to(out);
  return out.str();
}

/// Two groups, the second with half the rate.
template <class Optimizer, class Options>
std::unique_ptr<Optimizer> in_two_groups(Parameters const& all, Options const& options) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(Parameters(all.begin(), all.begin() + 5), std::make_unique<Options>(options));
  groups.emplace_back(Parameters(all.begin() + 5, all.end()), std::make_unique<Options>(options));
  groups[1].options().set_lr(0.5 * options.lr());
  return std::make_unique<Optimizer>(groups, options);
}

template <class Optimizer, class Options>
void saves_the_same_bytes(Options const& options) {
  Parameters const rising = parameters(true);
  Parameters const falling = parameters(false);
  auto const one = in_two_groups<Optimizer>(rising, options);
  auto const other = in_two_groups<Optimizer>(falling, options);
  step(*one, rising);
  step(*other, falling);
  CHECK((bytes_of(*one) == bytes_of(*other)));
  step(*one, rising);
  CHECK((bytes_of(*one) != bytes_of(*other)));
}

TEST_CASE("equal states of a torch optimizer are equal bytes, wherever its parameters are") {
  saves_the_same_bytes<torch::optim::Adam>(torch::optim::AdamOptions(0.1).amsgrad(true));
  saves_the_same_bytes<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9));
}

TEST_CASE("so are those of LBFGS, which has one state for all parameters") {
  auto const make = [](Parameters const& all) {
    auto made =
        std::make_unique<torch::optim::LBFGS>(all, torch::optim::LBFGSOptions(0.1).max_iter(1));
    step(*made, all);
    return made;
  };
  CHECK((bytes_of(*make(parameters(true))) == bytes_of(*make(parameters(false)))));
}

/// An update, a save, an update; and the second update repeated by another optimizer that has
/// loaded the save. Returns both results.
template <class Save>
std::pair<at::Tensor, at::Tensor> both_ends(Save&& save) {
  torch::optim::AdamOptions const options(0.1);
  Parameters const all = parameters(true);
  auto const one = in_two_groups<torch::optim::Adam>(all, options);
  step(*one, all);
  torch::serialize::OutputArchive out;
  save(*one, out);
  std::ostringstream bytes;
  out.save_to(bytes);

  Parameters const others = parameters(false);
  {
    at::NoGradGuard const no_gradients;
    for (std::size_t i = 0; i < all.size(); ++i) others[i].copy_(all[i]);
  }
  auto const other = in_two_groups<torch::optim::Adam>(others, options);
  std::istringstream stream(bytes.str());
  torch::serialize::InputArchive in;
  in.load_from(stream);
  other->load(in);
  step(*one, all);
  step(*other, others);
  return {at::cat(all).detach(), at::cat(others).detach()};
}

TEST_CASE("LibTorch loads this form, and Optimizer::save's form still loads") {
  auto const [end, resumed] =
      both_ends([](auto const& optimizer, auto& out) { save_by_place(optimizer, out); });
  CHECK(end.equal(resumed));
  auto const [old_end, old_resumed] =
      both_ends([](auto const& optimizer, auto& out) { optimizer.save(out); });
  CHECK(old_end.equal(old_resumed));
  CHECK(end.equal(old_end));
}

/// A user-defined optimizer with its own saved form.
struct Mine : torch::optim::SGD {
  using SGD::SGD;
  void save(torch::serialize::OutputArchive& archive) const override {
    archive.write("mine", at::ones({1}));
  }
};

TEST_CASE("a user-defined optimizer is saved by its own save()") {
  torch::serialize::OutputArchive archive;
  save_by_place(Mine(parameters(true), torch::optim::SGDOptions(0.1)), archive);
  std::ostringstream out;
  archive.save_to(out);
  std::istringstream stream(out.str());
  torch::serialize::InputArchive in;
  in.load_from(stream);
  CHECK(in.keys() == std::vector<std::string>{"mine"});
}

}  // namespace frugal_test::policy_optimize_torch_state

// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <torch/optim/sgd.h>

#include <frugal/frugal.hpp>

#include <sstream>

#include "support/running.hpp"

namespace frugal_test::trainer_explain {

using namespace frugal_test::support;
using namespace frugal::literals;

using Full =
    frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, frugal::Optimize<frugal::AdamW>,
                    frugal::ClipNorm<>, frugal::EarlyStop<frugal::Patience<2>>, frugal::Smoke<>>;

TEST_CASE("the plan names each policy in the order in which events reach it") {
  std::ostringstream out;
  frugal::explain<Full>(out);
  std::string const text = out.str();
  CAPTURE(text);
  std::size_t at = 0;
  []<class... Ps>(frugal::list<Ps...>, auto&& each) {
    (each(std::string(frugal::detail::name_in_plan<Ps>())), ...);
  }(Full::policies{}, [&](std::string const& name) {
    std::size_t const found = text.find("  " + name, at);
    CAPTURE(name);
    CHECK(found != std::string::npos);
    at = found + 1;
  });
  CHECK(text.find("Optimize<AdamW>") != std::string::npos);
  CHECK(text.find("frugal::") == std::string::npos);
  CHECK(text.find("lowers  runs to convergence") != std::string::npos);
  CHECK(text.find("one norm and one product over the gradients per step") != std::string::npos);
  CHECK(text.find("host syncs per step: 0\n") != std::string::npos);
}

TEST_CASE("cautions for this machine are in the plan") {
  std::ostringstream out;
  frugal::explain<
      frugal::Trainer<std::shared_ptr<Mlp>, frugal::CrossEntropy, frugal::Precision<frugal::BF16>>>(
      out);
  bool const has = out.str().find("caution: Precision<BF16>") != std::string::npos;
  CHECK(has == !frugal::Precision<frugal::BF16>::caution().empty());
}

template <class... Ps>
std::string plan(Mlp::Shape const& shape, Ps const&... policies) {
  std::ostringstream out;
  frugal::Trainer trainer{std::make_shared<Mlp>(shape), frugal::CrossEntropy{}, frugal::Settings{},
                          policies...};
  frugal::explain(trainer, out);
  return out.str();
}

TEST_CASE("the checkpoint's size is weights, buffers and the optimizer's state for them") {
  // 6 x 8 + 8 + 8 x 3 + 3 = 83 floats.
  CHECK(plan({}, frugal::Optimize<frugal::SGD>{})
            .find("checkpoint: 332 B (332 B weights and buffers, 0 B optimizer)") !=
        std::string::npos);
  CHECK(plan({}, frugal::Optimize<frugal::SGD>{.momentum = 0.9}).find("332 B optimizer") !=
        std::string::npos);
  CHECK(plan({}, frugal::Optimize<frugal::AdamW>{}).find("checkpoint: 996 B") != std::string::npos);
  CHECK(plan({}, frugal::Optimize<frugal::AdamW>{.amsgrad = true}).find("996 B optimizer") !=
        std::string::npos);
  // Normalisation adds 16 parameters, 16 running floats and a count of 8 bytes.
  std::string const norm = plan({.norm = true}, frugal::Optimize<frugal::SGD>{});
  CHECK(norm.find("parameters: 99\n") != std::string::npos);
  CHECK(norm.find("checkpoint: 468 B (468 B weights and buffers") != std::string::npos);
}

TEST_CASE("the averaged weights are part of a checkpoint's size") {
  CHECK(
      plan({}, frugal::Optimize<frugal::AdamW>{}, frugal::Average<>{})
          .find(
              "checkpoint: 1.3 KiB (332 B weights and buffers, 664 B optimizer, 332 B average)") !=
      std::string::npos);
}

TEST_CASE("so are the weights that EarlyStop restores") {
  std::string const with = plan({}, frugal::Optimize<frugal::SGD>{},
                                frugal::EarlyStop<frugal::Patience<3>>{.restore_best = true});
  CHECK(with.find("checkpoint: 664 B (332 B weights and buffers, 0 B optimizer, 332 B best "
                  "weights)") != std::string::npos);
  CHECK(plan({}, frugal::Optimize<frugal::SGD>{}, frugal::EarlyStop<frugal::Patience<3>>{})
            .find("checkpoint: 332 B") != std::string::npos);
}

TEST_CASE("the size of a torch optimizer's state is not known beforehand, and the plan says so") {
  frugal::Optimize<frugal::Any> const any{.make = [](std::vector<at::Tensor> parameters) {
    return std::make_unique<torch::optim::SGD>(std::move(parameters), 0.1);
  }};
  std::string const text = plan({}, any);
  CHECK(text.find("checkpoint: 332 B weights and buffers, and what the optimizer keeps") !=
        std::string::npos);
  CHECK(text.find("host syncs per step: 1\n") != std::string::npos);
}

TEST_CASE("bytes are shown in a suitable unit") {
  CHECK(frugal::detail::bytes_text(1023) == "1023 B");
  CHECK(frugal::detail::bytes_text(1536) == "1.5 KiB");
  CHECK(frugal::detail::bytes_text(3.0 * 1024 * 1024 * 1024) == "3.0 GiB");
}

}  // namespace frugal_test::trainer_explain

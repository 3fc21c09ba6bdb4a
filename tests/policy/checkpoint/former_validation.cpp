// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/frugal.hpp>
#include <frugal/report.hpp>

#include "support/curve.hpp"
#include "support/dying_runs.hpp"
#include "support/files.hpp"

#include <map>
#include <string>

namespace frugal_test::policy_checkpoint_former_validation {

using namespace support;
using namespace support::dying_runs;
namespace fr = frugal;
using namespace frugal::literals;

TEST_CASE("sources that both have, with other data, are the changed ones") {
  std::map<std::string, std::string> const one{
      {"content", "a"}, {"validation", "b"}, {"validation 'far'", "c"}};
  std::map<std::string, std::string> other = one;
  other["content"] = "z";
  auto const texts = [](auto const& data) { return fr::detail::validation_texts(data); };
  CHECK(fr::detail::changed_sources(texts(one), texts(other)).empty());
  other["validation 'far'"] = "y";
  CHECK(fr::detail::changed_sources(texts(one), texts(other)).size() == 1);
  CHECK(fr::detail::changed_sources(texts(one), texts(other)).contains("far"));
  other.erase("validation 'far'");
  other["validation"] = "x";
  CHECK(fr::detail::changed_sources(texts(one), texts(other)).contains(""));
}

TEST_CASE("after a change of the validation data, best values on the former ones do not count") {
  TemporaryFolder const folder;
  using Saves = fr::Checkpoint<fr::Every<1000>, fr::KeepBest<>, fr::Keep<1>>;
  follow(folder.path(), {5, 1, 1}, Saves{});
  CHECK(fr::best_checkpoint(folder.path()).filename() == "step-00000003");
  fr::Report const report =
      follow(folder.path(), {0, 0, 0, 9, 8, 8.5, 9}, Saves{.changed_data = {"validation"}}, 2);
  CHECK(advises(report,
                "the best values on the former ones are forgotten: KeepBest's best \"loss\""));
  CHECK((steps_in(folder.path()) == Steps{5, 7}));
  CHECK(fr::best_checkpoint(folder.path()).filename() == "step-00000005");
}

TEST_CASE("a metric in an old manifest does not win over one on the new validation data") {
  TemporaryFolder const folder;
  follow(folder.path(), {5, 1, 1}, fr::Checkpoint<fr::Every<1, fr::Epoch>, fr::Keep<9>>{});
  fr::Checkpoint<fr::Every<1, fr::Epoch>, fr::Keep<9>> const changed{
      .changed_data = {"validation"}};
  CHECK_FALSE(advises(follow(folder.path(), {0, 0, 0, 9, 8, 8.5}, changed, 2), "forgotten"));
  CHECK(fr::best_checkpoint(folder.path()).filename() == "step-00000005");
}

TEST_CASE(
    "EarlyStop and Plateau forget a best value on former validation data, and their patience") {
  TemporaryFolder const folder;
  using Stop = fr::EarlyStop<fr::Patience<2>>;
  using Lowers = fr::Schedule<fr::Plateau<0.5_r, fr::Patience<1>>>;
  fr::Checkpoint<fr::Every<1>> const saves{.changed_data = {"validation"}};
  auto const start = [&](std::vector<double> const& losses, double value) {
    return follow(folder.path(), losses, saves, value, Stop{.restore_best = true}, Lowers{});
  };
  start({1, 1.5}, 1);
  fr::Report const report = start({0, 0, 9, 8, 7}, 2);
  CHECK(report.stopped_by.empty());
  CHECK(report.steps == 5);
  CHECK(report.restored_step == 5u);
  CHECK(report.validations.size() == 5);
  CHECK(advises(report, "EarlyStop's best \"loss\"; Plateau's best \"loss\""));
}

}  // namespace frugal_test::policy_checkpoint_former_validation

// SPDX-License-Identifier: Apache-2.0
// The same of policies that change the model.
#include <frugal/model.hpp>

#include "conform/resuming.hpp"

namespace frugal_test::conform_resume {

TEST_CASE("a run resumed with adapters ends with the same bits, and the same parameters trained") {
  resumes(frugal::list<frugal::Optimize<frugal::AdamW>,
                       frugal::Lora<frugal::Rank<2>, frugal::AdapterDropout<0.2_r>,
                                    frugal::On<"first", "second">, frugal::AlsoTrain<"norm.*">>,
                       frugal::Average<frugal::Ema<0.9_r>>, frugal::ClipNorm<0.5_r>>{});
  resumes(frugal::list<frugal::Optimize<frugal::SGD>, frugal::Precision<frugal::BF16>,
                       frugal::Recompute<frugal::Segments<2>>, frugal::Accumulate<3>,
                       frugal::Lora<frugal::Rank<2>, frugal::Dora, frugal::On<"first">>>{});
}

TEST_CASE("a run resumed with layers that are unfrozen later ends with the same bits") {
  resumes(frugal::list<
          frugal::Optimize<frugal::AdamW>, frugal::Freeze<frugal::Where<"norm.*">>,
          frugal::Unfreeze<frugal::Where<"first.weight", "first.bias">, frugal::Every<7>>>{});
}

}  // namespace frugal_test::conform_resume

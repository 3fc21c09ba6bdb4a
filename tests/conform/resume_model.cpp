// SPDX-License-Identifier: Apache-2.0
// The same of policies that change the model.
#include <frugal/model.hpp>

#include "conform/resuming.hpp"

namespace frugal_test::conform_resume {

TEST_CASE("a run resumed with adapters ends with the same bits, and the same parameters trained") {
  resumes(frugal::list<frugal::Optimize<frugal::AdamW>,
                       frugal::Lora<frugal::Rank<2>, frugal::AdapterDropout<0.2>,
                                    frugal::On<"first", "second">, frugal::AlsoTrain<"norm.*">>,
                       frugal::Average<frugal::Ema<0.9>>, frugal::ClipNorm<0.5>>{});
  resumes(frugal::list<
          frugal::Optimize<frugal::SGD>, frugal::Precision<frugal::BF16>,
          frugal::Recompute<frugal::Segments<2>>, frugal::Accumulate<3>,
          frugal::Lora<frugal::Rank<2>, frugal::Dora, frugal::On<"first">>,
          frugal::Lora<frugal::Rank<2>, frugal::AdapterName<"other">, frugal::On<"second">>>{});
}

TEST_CASE("a run resumed with layers that are unfrozen later ends with the same bits") {
  resumes(
      frugal::list<frugal::Optimize<frugal::AdamW>,
                   frugal::Freeze<frugal::Where<"first.bias", "norm.*">>,
                   frugal::Unfreeze<frugal::Where<"first.weight", "norm.*">, frugal::Every<7>>>{});
}

TEST_CASE("a run resumed while it is pruned ends with the same bits") {
  using frugal::list, frugal::Prune, frugal::Sparsity, frugal::Optimize;
  resumes(list<Optimize<frugal::AdamW>, frugal::ClipNorm<0.5>,
               Prune<frugal::Magnitude, Sparsity<0.6>, frugal::From<4>, frugal::Cubic<16>,
                     frugal::Every<3>, frugal::Global>>{});
  resumes(list<Optimize<frugal::SGD>, frugal::Accumulate<2>,
               Prune<frugal::Movement, Sparsity<0.5>, frugal::From<5>,
                     frugal::Where<"first.weight">>>{});
  resumes(list<Optimize<frugal::AdamW>, frugal::Average<frugal::Ema<0.9>>,
               Prune<frugal::NofM<1, 2>, frugal::Where<"first.weight">>>{});
}

TEST_CASE("a run resumed with quantization in its passes ends with the same bits and ranges") {
  using frugal::list, frugal::Optimize, frugal::Qat, frugal::INT8;
  resumes(list<Optimize<frugal::AdamW>, Qat<INT8>, frugal::Average<frugal::Ema<0.9>>>{});
  resumes(list<Optimize<frugal::SGD>, frugal::Recompute<frugal::Segments<2>>,
               Qat<INT8, frugal::Learned>>{});
}

}  // namespace frugal_test::conform_resume

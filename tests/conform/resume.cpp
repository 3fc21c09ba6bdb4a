// SPDX-License-Identifier: Apache-2.0
#include "conform/resuming.hpp"

namespace frugal_test::conform_resume {

TEST_CASE(
    "a run resumed at any step ends with the same bits: AdamW, BF16, windows, all observers") {
  resumes(frugal::list<frugal::Optimize<frugal::AdamW>, frugal::Precision<frugal::BF16>,
                       frugal::Accumulate<3>, frugal::ClipNorm<0.5>,
                       frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>,
                       frugal::Validate<frugal::Every<2>, frugal::Accuracy>,
                       frugal::EarlyStop<frugal::Patience<50>>, frugal::Log<frugal::Every<2>>,
                       frugal::Progress<>, frugal::DryRun<>, frugal::Average<frugal::Ema<0.9>>>{});
}

TEST_CASE("a run resumed in the middle of a plateau ends with the same bits") {
  resumes(frugal::list<frugal::Optimize<frugal::SGD>,
                       frugal::Schedule<frugal::Plateau<0.5, frugal::Patience<1>>>,
                       frugal::Validate<frugal::Every<2>>, frugal::Accumulate<1>,
                       frugal::Average<frugal::Swa<frugal::From<5>, frugal::Every<4>>>>{});
}

TEST_CASE("a run resumed with a torch optimizer ends with the same bits") {
  resumes(frugal::list<frugal::Optimize<frugal::Any>,
                       frugal::Schedule<frugal::Warmup<3>, frugal::Cosine>>{});
}

TEST_CASE("a run resumed with Adam or Adagrad ends with the same bits") {
  resumes(frugal::list<frugal::Optimize<frugal::Adam>, frugal::Validate<>,
                       frugal::Audit<frugal::BitExact>>{});
  resumes(frugal::list<frugal::Optimize<frugal::Adagrad>, frugal::ClipNorm<0.5>>{});
}

}  // namespace frugal_test::conform_resume

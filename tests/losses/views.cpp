// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/losses/views.hpp>

#include "cases.hpp"

namespace frugal_test::losses_views {

using namespace frugal_test::losses;
using frugal::detail::embed_views;

/// Reads the batch itself.
struct Reader : torch::nn::Module {
  at::Tensor forward_batch(Batch const& batch) { return batch.data; }
};

TEST_CASE("the module sees the views of a sample one after the other") {
  Identity identity;
  at::Tensor const views = at::arange(12).view({2, 3, 2}).to(at::kFloat);
  CHECK(embed_views(identity, Batch{views, {}}, 3, "here").equal(views));
  CHECK(frugal::detail::views_in_rows(views, 3, "here")[3].equal(views[1][0]));
}

TEST_CASE("a module that reads the batch returns the views itself, in either shape") {
  Reader reader;
  at::Tensor const views = at::randn({2, 3, 4});
  CHECK(embed_views(reader, Batch{views, {}}, 3, "here").equal(views));
  CHECK(embed_views(reader, Batch{views.flatten(0, 1), {}}, 3, "here").equal(views));
}

TEST_CASE("other data and outputs are refused with their shapes") {
  Identity identity;
  auto const refused = [&](at::Tensor const& data) {
    return text_of([&] { embed_views(identity, Batch{data, {}}, 2, "here"); });
  };
  CHECK(says(refused(at::zeros({4, 3, 5})), "they are [4, 3, 5] Float"));
  CHECK(says(refused(at::zeros({4})), "they are [4] Float"));
  CHECK(says(refused(at::zeros({4, 2, 5, 5})), "it is [8, 5, 5] Float, of 2 views per sample"));
  CHECK(says(refused(at::zeros({4, 2, 5}, at::kLong)), "it is [8, 5] Long"));
}

}  // namespace frugal_test::losses_views

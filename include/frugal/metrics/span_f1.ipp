// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/metrics/span_f1.hpp>

#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <limits>
#include <string>
#include <utility>

#include <frugal/metrics/confusion_matrix.hpp>

namespace frugal::detail {

/// Where spans begin and where each ends, in sequences without gaps.
struct SpanPositions {
  at::Tensor begins;  ///< [B, T] bool
  at::Tensor last;    ///< [B, T] int64: the last position of the span that begins there
  at::Tensor types;   ///< [B, T] int64
};

/// seqeval's start_of_chunk and end_of_chunk. `tags` and `types` are [B, T].
FRUGAL_INLINE SpanPositions span_positions(at::Tensor const& tags, at::Tensor const& types) {
  auto const is = [](at::Tensor const& which, SpanTag tag) {
    return which.eq(static_cast<std::int64_t>(tag));
  };
  // What stands before position t, and at it, for t from 0 to T: "O" around the sequence.
  at::Tensor const none = at::zeros({tags.size(0), 1}, tags.options());
  at::Tensor const before = at::cat({none, tags}, 1);
  at::Tensor const here = at::cat({tags, none}, 1);
  at::Tensor const changes = at::cat({none - 1, types}, 1).ne(at::cat({types, none - 1}, 1));

  at::Tensor const closed = is(before, SpanTag::end).logical_or_(is(before, SpanTag::single));
  at::Tensor const is_outside = is(here, SpanTag::outside);
  at::Tensor const opens = is(here, SpanTag::begin).logical_or_(is(here, SpanTag::single));
  at::Tensor const goes_on = is(here, SpanTag::inside).logical_or_(is(here, SpanTag::end));
  at::Tensor const after_none = closed.logical_or(is(before, SpanTag::outside));
  at::Tensor const begins = opens.logical_or(after_none.logical_and(goes_on))
                                .logical_or_(is_outside.logical_not().logical_and_(changes));
  at::Tensor const open = is(before, SpanTag::begin).logical_or_(is(before, SpanTag::inside));
  at::Tensor const ends =
      closed.logical_or(open.logical_and(opens.logical_or(is_outside)))
          .logical_or_(is(before, SpanTag::outside).logical_not_().logical_and_(changes));

  std::int64_t const length = tags.size(1);
  at::Tensor const position = at::arange(length, tags.options());
  // The next end from each position on.
  at::Tensor const last =
      std::get<0>(at::where(ends.narrow(1, 1, length), position, length).flip(1).cummin(1)).flip(1);
  return {.begins = begins.narrow(1, 0, length), .last = last, .types = types};
}

FRUGAL_INLINE void SpanCounts::add(at::Tensor const& output, at::Tensor const& target,
                                   SpanTags const& tags, std::string_view metric) {
  require_floats(metric, output);
  if (output.dim() != 3 || !are_logits(output, target) || target.is_floating_point()) {
    refuse_shapes(metric, output, target,
                  "Logits are [B, C, T], a sequence per row, labels [B, T] of an integer type.");
  }
  auto const classes = static_cast<std::int64_t>(tags.tags.size());
  if (output.size(1) != classes) {
    throw MetricError({.what = "there is not a tag for each class",
                       .where = "metric " + std::string(metric),
                       .why = std::to_string(classes) + " tags, and the output has " +
                              std::to_string(output.size(1)) + " classes",
                       .fix = "Give SpanF1<...> the tag of each label, in their order."});
  }
  if (!tags_.defined() || tags_.device() != target.device()) {
    // Filled where they are: a copy from the host would wait for the device.
    auto const placed = [&](std::vector<std::int64_t> const& numbers) {
      at::Tensor const all = at::empty({classes}, target.options().dtype(at::kLong));
      for (std::int64_t c = 0; c < classes; ++c) {
        all.select(0, c).fill_(numbers[static_cast<std::size_t>(c)]);
      }
      return all;
    };
    tags_ = placed(tags.tags);
    types_ = placed(tags.types);
  }
  at::Tensor const labels = target.to(at::kLong);
  labels_.add(flattened(labels), classes);
  if (labels.numel() == 0) return;

  // Tokens that count move to the front of their sequence, in their order; behind them all is "O".
  at::Tensor const left_out = labels.eq(ignored_label);
  at::Tensor const order = left_out.to(at::kByte).argsort(/*stable=*/true, 1, /*descending=*/false);
  at::Tensor const is_left_out = left_out.gather(1, order);
  auto const spans = [&](at::Tensor const& classes_BT, at::Tensor const& none) {
    at::Tensor const ordered = classes_BT.gather(1, order);
    auto const taken = [&](at::Tensor const& from, std::int64_t outside) {
      return from.index_select(0, ordered.flatten())
          .view(ordered.sizes())
          .masked_fill_(none, outside);
    };
    return span_positions(taken(tags_, static_cast<std::int64_t>(SpanTag::outside)),
                          taken(types_, -1));
  };
  auto const [largest, predicted] = output.max(1);
  SpanPositions const own = spans(labels.clamp(0, classes - 1), is_left_out);
  SpanPositions const found =
      spans(predicted, is_left_out.logical_or(largest.isnan().gather(1, order)));
  at::Tensor const right = own.begins.logical_and(found.begins)
                               .logical_and_(own.last.eq(found.last))
                               .logical_and_(own.types.eq(found.types));
  auto const per_type = [&](at::Tensor const& which, SpanPositions const& all) {
    return counted_at(all.types.clamp_min(0).flatten(), which.to(at::kLong).flatten(),
                      tags.type_count);
  };
  counts_.add(
      at::stack({per_type(right, own), per_type(found.begins, found), per_type(own.begins, own)}));
}

FRUGAL_INLINE Metrics SpanCounts::result(std::string_view metric) const {
  double const labels = labels_.counted(metric);
  Metrics found;
  auto const set = [&](double precision, double recall, double f1) {
    found.set("span_precision", precision);
    found.set("span_recall", recall);
    found.set("span_f1", f1);
  };
  at::Tensor const counts = counts_.on_host();
  if (labels == 0 || !counts.defined()) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    set(nan, nan, nan);
    return found;
  }
  // The counts above are 0 wherever those below are.
  auto const share = [](at::Tensor const& above, at::Tensor const& below) {
    return above / below.clamp_min(1);
  };
  auto const scores = [&](at::Tensor const& of) {
    return at::stack({share(of[0], of[1]), share(of[0], of[2]), share(2 * of[0], of[1] + of[2])});
  };
  at::Tensor const all = scores(counts.sum(1)).contiguous();
  auto const* const score = all.const_data_ptr<double>();
  set(score[0], score[1], score[2]);
  found.set_table(metric, scores(counts).t().contiguous());
  return found;
}

}  // namespace frugal::detail

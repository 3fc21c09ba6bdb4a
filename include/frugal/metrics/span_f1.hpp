// SPDX-License-Identifier: Apache-2.0
// Shapes: B sequences, C tags, T positions, K types of entities.
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <frugal/core/compose/fixed_string.hpp>
#include <frugal/core/run/metrics.hpp>
#include <frugal/core/run/objective.hpp>
#include <frugal/metrics/decisions.hpp>

namespace frugal {

namespace detail {

/// What a tag says: the letter before its type, and the type.
enum class SpanTag : std::int64_t { outside, begin, inside, end, single };

constexpr bool is_span_tag(std::string_view tag) {
  if (tag.empty() || std::string_view("OBIES").find(tag[0]) == std::string_view::npos) return false;
  return tag.size() == 1 || (tag[0] != 'O' && tag[1] == '-');
}
constexpr SpanTag span_tag_of(std::string_view tag) {
  return static_cast<SpanTag>(std::string_view("OBIES").find(tag[0]));
}
/// "PER" of "B-PER"; "_" of a bare "B", as in seqeval.
constexpr std::string_view span_type_of(std::string_view tag) {
  return tag.size() <= 2 ? std::string_view("_") : tag.substr(2);
}

/// The tags of a metric, by label.
struct SpanTags {
  std::vector<std::int64_t> tags;   ///< [C] SpanTag
  std::vector<std::int64_t> types;  ///< [C] place of the type; -1 of "O"
  std::int64_t type_count = 0;
};

/// Per type of entity: how many are right, predicted, and labelled.
class SpanCounts {
 public:
  void add(at::Tensor const& output, at::Tensor const& target, SpanTags const& tags,
           std::string_view metric);
  Metrics result(std::string_view metric) const;

  template <class Sum>
  void reduce(Sum&& sum) {
    counts_.reduce(sum);
    labels_.reduce(sum);
  }
  template <class Archive>
  void persist(Archive& archive) {
    counts_.persist(archive, "counts");
    labels_.persist(archive);
  }

 private:
  TensorTally counts_;  ///< [3, K]
  LabelTally labels_;
  // Where they were used last; never changed.
  at::Tensor tags_, types_;  ///< [C] int64
};

}  // namespace detail

/// Precision, recall and F1 of entities: "span_precision", "span_recall" and "span_f1", of all types together. An
/// entity is right if its first token, its last token and its type are. Values are those of seqeval in its default
/// mode (not strict), with average="micro".
///
///     SpanF1<"O", "B-PER", "I-PER", "B-LOC", "I-LOC">   // the tag of each label, in their order
///
/// Tags are "O", "B-...", "I-...", and those of IOBES, "E-..." and "S-...". An "I-" after another type or after "O"
/// begins an entity. Takes logits [B, C, T], a sequence per row, with labels [B, T] of an integer type. Tokens whose
/// label is -100 are taken out of the sequence, so that the words of a tokenizer's pieces stay neighbours.
///
/// `metrics.table("span_f1")` is [K, 3] double in host memory: precision, recall and F1 of each type, in the order in
/// which the types appear among the tags. A score that would divide by 0 is 0; NaN if no label counts. A token with a
/// NaN logit is predicted as "O". MetricError for other shapes, another number of classes than tags, and labels that
/// name no tag. State: three numbers per type.
template <fixed_string... Tags>
class SpanF1 {
  static constexpr std::size_t classes = sizeof...(Tags);
  static constexpr std::array<std::string_view, classes> texts{std::string_view(Tags)...};

  static_assert((true && ... && detail::is_span_tag(std::string_view(Tags))) &&
                    (false || ... || (std::string_view(Tags) != "O")),
                "frugal: SpanF1<...>: a tag is O, or B, I, E or S with a type. Write "
                "SpanF1<\"O\", \"B-PER\", \"I-PER\">.");

 public:
  static constexpr std::string_view name = "span_f1";
  static constexpr bool whole_numbers = true;  // counts: exact in any order

  template <class B>
  void add(Loss const& loss, B const& batch) {
    counts_.add(detail::output_of(loss, name), detail::target_of(batch), tags(), name);
  }
  template <class Sum>
  void reduce(Sum&& sum) {
    counts_.reduce(sum);
  }
  Metrics result() const { return counts_.result(name); }
  template <class Archive>
  void persist(Archive& archive) {
    counts_.persist(archive);
  }

 private:
  static detail::SpanTags tags() {
    detail::SpanTags all;
    std::vector<std::string_view> types;
    for (std::string_view const text : texts) {
      detail::SpanTag const tag = detail::span_tag_of(text);
      all.tags.push_back(static_cast<std::int64_t>(tag));
      if (tag == detail::SpanTag::outside) {
        all.types.push_back(-1);
        continue;
      }
      auto const found = std::find(types.begin(), types.end(), detail::span_type_of(text));
      all.types.push_back(found - types.begin());
      if (found == types.end()) types.push_back(detail::span_type_of(text));
    }
    all.type_count = static_cast<std::int64_t>(types.size());
    return all;
  }

  detail::SpanCounts counts_;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/metrics/span_f1.ipp>
#endif

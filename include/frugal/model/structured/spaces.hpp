// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include <frugal/inline.hpp>

namespace frugal::detail {

/// The positions along an axis of tensors that stand for the same thing everywhere: the channels of
/// a residual stream, the heads of an attention. What is removed of one is removed of all.
using Space = std::size_t;

/// An axis: the product of its spaces, the outermost first. Flattened channels and places are two
/// spaces; an axis of size 1 has none.
using Axis = std::vector<Space>;

/// Which spaces are one, which are split, and which must keep their size.
class Spaces {
 public:
  FRUGAL_INLINE Space make(std::int64_t size) {
    nodes_.push_back({.parent = nodes_.size(), .size = size, .parts = {}, .why = {}});
    return nodes_.size() - 1;
  }
  FRUGAL_INLINE Axis axis(std::int64_t size) { return size == 1 ? Axis{} : Axis{make(size)}; }
  FRUGAL_INLINE Axis locked_axis(std::int64_t size, std::string const& why) {
    Axis made = axis(size);
    lock(made, why);
    return made;
  }

  std::int64_t size(Space space) const { return nodes_[root(space)].size; }
  FRUGAL_INLINE std::int64_t size(Axis const& axis) const {
    std::int64_t all = 1;
    for (Space const each : axis) all *= size(each);
    return all;
  }
  /// Empty if the space may be cut.
  std::string const& locked(Space space) const { return nodes_[root(space)].why; }

  /// In terms of spaces that are not split; the same names for the same spaces.
  FRUGAL_INLINE Axis resolved(Axis const& axis) const {
    Axis all;
    for (Space const each : axis) {
      Node const& node = nodes_[root(each)];
      if (node.parts.empty()) {
        all.push_back(root(each));
      } else {
        Axis const parts = resolved(node.parts);
        all.insert(all.end(), parts.begin(), parts.end());
      }
    }
    return all;
  }

  /// Their size stays, because of `why`; the first reason is kept.
  FRUGAL_INLINE void lock(Axis const& axis, std::string const& why) {
    for (Space const each : resolved(axis)) {
      if (nodes_[each].why.empty()) nodes_[each].why = why;
    }
  }

  /// Makes two parts of a space, `outer` and what is left.
  FRUGAL_INLINE std::pair<Space, Space> split(Space space, std::int64_t outer) {
    Space const from = root(space);
    Space const first = make(outer);
    Space const second = make(nodes_[from].size / outer);
    nodes_[first].why = nodes_[second].why = nodes_[from].why;
    nodes_[from].parts = {first, second};
    return {first, second};
  }

  /// Both axes stand for the same. Axes that do not fit are locked.
  FRUGAL_INLINE void unify(Axis const& one, Axis const& other, std::string const& why) {
    if (size(one) != size(other)) return refuse(one, other, why);
    Axis const first = resolved(one);
    Axis const second = resolved(other);
    std::deque<Space> a(first.begin(), first.end());
    std::deque<Space> b(second.begin(), second.end());
    while (!a.empty() && !b.empty()) {
      Space const x = root(a.front());
      Space const y = root(b.front());
      a.pop_front();
      b.pop_front();
      // A space that both axes have may have been split at its first place.
      bool const x_is_split = expand(x, a);
      bool const y_is_split = expand(y, b);
      if (x_is_split || y_is_split) {
        if (!x_is_split) a.push_front(x);
        if (!y_is_split) b.push_front(y);
        continue;
      }
      if (size(x) == size(y)) {
        merge(x, y);
      } else if (size(x) % size(y) == 0) {
        a.push_front(split(x, size(y)).second);
        merge(nodes_[x].parts.front(), y);
      } else if (size(y) % size(x) == 0) {
        b.push_front(split(y, size(x)).second);
        merge(nodes_[y].parts.front(), x);
      } else {
        return refuse(one, other, why);
      }
    }
  }

 private:
  struct Node {
    Space parent;
    std::int64_t size;
    Axis parts;
    std::string why;
  };

  FRUGAL_INLINE Space root(Space space) const {
    while (nodes_[space].parent != space) space = nodes_[space].parent;
    return space;
  }
  FRUGAL_INLINE bool expand(Space space, std::deque<Space>& into) const {
    Axis const& parts = nodes_[space].parts;
    into.insert(into.begin(), parts.begin(), parts.end());
    return !parts.empty();
  }
  FRUGAL_INLINE void merge(Space one, Space other) {
    Space const a = root(one);
    Space const b = root(other);
    if (a == b) return;
    nodes_[b].parent = a;
    if (nodes_[a].why.empty()) nodes_[a].why = nodes_[b].why;
  }
  FRUGAL_INLINE void refuse(Axis const& one, Axis const& other, std::string const& why) {
    lock(one, why);
    lock(other, why);
  }

  std::vector<Node> nodes_;
};

}  // namespace frugal::detail

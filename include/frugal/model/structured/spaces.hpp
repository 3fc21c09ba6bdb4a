// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

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
  Space make(std::int64_t size);
  Axis axis(std::int64_t size);
  Axis locked_axis(std::int64_t size, std::string const& why);

  std::int64_t size(Space space) const { return nodes_[root(space)].size; }
  std::int64_t size(Axis const& axis) const;
  /// Empty if the space may be cut.
  std::string const& locked(Space space) const { return nodes_[root(space)].why; }

  /// In terms of spaces that are not split; the same names for the same spaces.
  Axis resolved(Axis const& axis) const;

  /// Their size stays, because of `why`; the first reason is kept.
  void lock(Axis const& axis, std::string const& why);

  /// Makes two parts of a space, `outer` and what is left.
  std::pair<Space, Space> split(Space space, std::int64_t outer);

  /// Both axes stand for the same. Axes that do not fit are locked.
  void unify(Axis const& one, Axis const& other, std::string const& why);

 private:
  struct Node {
    Space parent;
    std::int64_t size;
    Axis parts;
    std::string why;
  };

  Space root(Space space) const;
  bool expand(Space space, std::deque<Space>& into) const;
  void merge(Space one, Space other);
  void refuse(Axis const& one, Axis const& other, std::string const& why);

  std::vector<Node> nodes_;
};

}  // namespace frugal::detail

#ifndef FRUGAL_COMPILED
#include <frugal/model/structured/spaces.ipp>
#endif

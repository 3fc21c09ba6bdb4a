// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/SmallVector.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/recompute/frame.hpp>
#include <frugal/core/run/counters.hpp>

namespace frugal::detail {

/// The stand-in for the members of a ModuleList that several processes divide. each() gives it the
/// input of the first one, and gets the output of the last one.
struct DividedMember : torch::nn::Module {
  using Call =
      std::function<at::Tensor(std::shared_ptr<torch::nn::Module>& member, at::Tensor input)>;
  virtual at::Tensor call_all(at::Tensor input, Call const& call) = 0;
};

[[noreturn]] void refuse_divided();

}  // namespace frugal::detail

namespace frugal {

/// Divides a Sequential or list into N segments of nearly equal length. Auto: about the square root
/// of its length, rounded so that no segment is longer than that, because a member holds more
/// activations than its input.
template <auto N>
struct Segments {
  static_assert(N >= 1,
                "frugal: Segments<0> leaves nothing to recompute. Write Segments<4> or "
                "Segments<Auto>, or leave Recompute out.");
  static constexpr std::size_t number = N;
};
template <>
struct Segments<Auto> {
  static constexpr std::size_t number = 0;
  static std::size_t of(std::size_t length) {
    auto const longest = static_cast<std::size_t>(std::sqrt(static_cast<double>(length)));
    return longest == 0 ? 0 : (length + longest - 1) / longest;
  }
};

/// The modules for which `Predicate{}(name, module)` is true, each as its own segment.
template <class Predicate>
struct Modules {
  static_assert(
      requires(std::string_view name, torch::nn::Module const& module) {
        { Predicate{}(name, module) } -> std::convertible_to<bool>;
      },
      "frugal: a predicate for Modules is called with a module's name and the module. Give it "
      "`bool operator()(std::string_view, torch::nn::Module const&) const`.");
};

namespace detail {

template <class M>
struct held_module {
  using type = M;
};
template <class M>
  requires requires { typename M::ContainedType; }
struct held_module<M> {
  using type = typename M::ContainedType;
};

}  // namespace detail

/// A predicate: modules of these types, given as module types or holders.
template <class... Modules>
struct OfType {
  bool operator()(std::string_view, torch::nn::Module const& module) const {
    return (... ||
            (dynamic_cast<typename detail::held_module<Modules>::type const*>(&module) != nullptr));
  }
};

namespace detail {

template <class How>
struct SegmentPlan;

/// The segment of each member of a Sequential or list; nothing for members that are not recomputed.
/// Lists of usual length cost no allocation.
using SegmentNumbers = c10::SmallVector<std::optional<std::size_t>, 32>;
using Members = c10::SmallVector<torch::nn::Module const*, 32>;

/// How a recipe's Recompute segments a Sequential or list.
class Plan {
 public:
  Plan() = default;
  Plan(Plan const&) = delete;
  Plan& operator=(Plan const&) = delete;
  virtual ~Plan() = default;
  virtual SegmentNumbers assign(Members const& members) const = 0;
};

template <auto N>
struct SegmentPlan<Segments<N>> final : Plan {
  std::size_t most = Segments<N>::number;  ///< 0: as Segments<Auto>

  SegmentNumbers assign(Members const& members) const override {
    std::size_t const segments =
        most == 0 ? Segments<Auto>::of(members.size()) : std::min(members.size(), most);
    SegmentNumbers assignment;
    for (std::size_t i = 0; i < members.size(); ++i) {
      // The first segments are longer by one.
      std::size_t const length = members.size() / segments;
      std::size_t const longer = members.size() % segments;
      std::size_t const in_longer = longer * (length + 1);
      assignment.emplace_back(i < in_longer ? i / (length + 1) : longer + (i - in_longer) / length);
    }
    return assignment;
  }
};

template <class Predicate>
struct SegmentPlan<Modules<Predicate>> final : Plan {
  SegmentNumbers assign(Members const& members) const override {
    SegmentNumbers assignment;
    for (std::size_t i = 0; i < members.size(); ++i) {
      assignment.push_back(wanted.contains(members[i]) ? std::optional(i) : std::nullopt);
    }
    return assignment;
  }
  std::unordered_set<torch::nn::Module const*> wanted;
};

/// One forward pass of training under a Recompute policy, as seen by modules that can be segmented.
struct SegmentedPass {
  Plan const& plan;
  std::size_t kept;     ///< the last segment of the previous pass: backward begins with it, so it
                        ///< is kept
  std::size_t ran = 0;  ///< segments so far

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// Whether the segment that begins now will be recomputed.
  bool recomputes() { return ran++ != kept; }
};

/// The pass of this thread; null if there is none, or inside a segment.
inline thread_local SegmentedPass* segmented_pass = nullptr;

inline SegmentedPass* segmented_pass_here() {
  return inside_segment == 0 && at::GradMode::is_enabled() ? segmented_pass : nullptr;
}

template <class Range>
decltype(auto) members_of(Range& list) {
  if constexpr (requires { list.begin(); }) {
    return (list);
  } else {
    return (*list);  // a module holder, in a ModuleList
  }
}

template <class Member>
torch::nn::Module const* module_in(Member& member) {
  if constexpr (ModulePointer<Member>) {
    return std::addressof(*member);
  } else {
    return nullptr;
  }
}

/// Null unless several processes divide the list.
template <class Members>
DividedMember* divided_member_of(Members& members) {
  return members.begin() == members.end() ? nullptr
                                          : dynamic_cast<DividedMember*>(members.begin()->get());
}

/// Consecutive members of a list.
template <class Member, class Call>
struct Stretch {
  c10::SmallVector<Member, 8> members;  // up to 8 members without allocation
  Call call;

  template <class X>
  X operator()(X x) {
    for (Member& member : members) x = call(member, std::move(x));
    return x;
  }
  std::vector<at::Tensor> module_buffers() {
    std::vector<at::Tensor> all;
    for (Member& member : members) {
      for (at::Tensor& buffer : buffers_in(member)) all.push_back(std::move(buffer));
    }
    return all;
  }
};

}  // namespace detail

/// `for (auto& member : list) x = call(member, x)`, in segments if the recipe has Recompute.
///
/// list  a torch::nn::ModuleList, or any range of module holders or pointers to modules
/// x     a tensor, or a tuple or vector of tensors, passed from each member to the next
/// call  `(member, x) -> x`; capture by value, see recompute
template <class List, class X, class Call>
X each(List&& list, X x, Call call) {
  auto& members = detail::members_of(list);
  using Member = std::remove_cvref_t<decltype(*members.begin())>;
  static_assert(
      std::copyable<Member> && detail::ModulePointer<Member>,
      "frugal: each takes a ModuleList, or a range of module holders or shared pointers.");
  if constexpr (std::same_as<Member, std::shared_ptr<torch::nn::Module>>) {
    detail::DividedMember* const divided = detail::divided_member_of(members);
    if (divided) [[unlikely]] {
      if constexpr (std::same_as<X, at::Tensor>) {
        return divided->call_all(std::move(x), call);
      } else {
        detail::refuse_divided();
      }
    }
  }
  detail::SegmentedPass* const pass = detail::segmented_pass_here();
  if (!pass) {
    for (auto& member : members) x = call(member, std::move(x));
    return x;
  }
  detail::Members modules;
  for (auto& member : members) modules.push_back(detail::module_in(member));
  detail::SegmentNumbers const segment = pass->plan.assign(modules);
  auto next = members.begin();
  for (std::size_t begin = 0, end = 0; begin < modules.size(); begin = end) {
    auto const first = next++;
    for (end = begin + 1; end < modules.size() && segment[begin] && segment[end] == segment[begin];
         ++end) {
      ++next;
    }
    auto const plainly = [&] {
      for (auto each = first; each != next; ++each) x = call(*each, std::move(x));
    };
    if (!segment[begin]) {
      plainly();
    } else if (pass->recomputes()) {
      detail::Stretch<Member, Call> stretch{c10::SmallVector<Member, 8>(first, next), call};
      x = recompute(std::move(stretch), std::move(x));
    } else {
      detail::Inside const inside;
      plainly();
    }
  }
  return x;
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/policy/recompute/segments.ipp>
#endif

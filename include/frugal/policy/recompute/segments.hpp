// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include <frugal/loop/counters.hpp>
#include <frugal/policy/recompute/function.hpp>

namespace frugal {

/// N segments of a Sequential or list, as equal as can be. Auto: about the square root of its
/// length, rounded so that none is longer than that: what is inside of a member is more than what
/// goes in.
template <auto N>
struct Segments {
  static_assert(N >= 1,
                "frugal: Segments<0> leaves nothing to recompute. Write Segments<4> or "
                "Segments<Auto>, or leave Recompute out.");
  static constexpr std::size_t of(std::size_t length) {
    return length < std::size_t{N} ? length : std::size_t{N};
  }
};
template <>
struct Segments<Auto> {
  static std::size_t of(std::size_t length) {
    auto const longest = static_cast<std::size_t>(std::sqrt(static_cast<double>(length)));
    return longest == 0 ? 0 : (length + longest - 1) / longest;
  }
};

/// The modules for which `Predicate{}(name, module)` is true, each by itself.
template <class Predicate>
struct Where {
  static_assert(
      requires(std::string_view name, torch::nn::Module const& module) {
        { Predicate{}(name, module) } -> std::convertible_to<bool>;
      },
      "frugal: a predicate for Where is called with a module's name and the module. Give it "
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

/// A predicate: modules of these types, named by themselves or by their holders.
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

/// Which segment each member of a Sequential or a list is in; nothing for those that are left
/// alone.
using SegmentNumbers = std::vector<std::optional<std::size_t>>;
using Members = std::vector<torch::nn::Module const*>;

/// How a recipe's Recompute segments what it meets.
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
  SegmentNumbers assign(Members const& members) const override {
    std::size_t const segments = Segments<N>::of(members.size());
    SegmentNumbers assignment;
    for (std::size_t i = 0; i < members.size(); ++i) {
      // The first ones are the longer ones, by one.
      std::size_t const length = members.size() / segments;
      std::size_t const longer = members.size() % segments;
      std::size_t const in_longer = longer * (length + 1);
      assignment.emplace_back(i < in_longer ? i / (length + 1) : longer + (i - in_longer) / length);
    }
    return assignment;
  }
};

template <class Predicate>
struct SegmentPlan<Where<Predicate>> final : Plan {
  SegmentNumbers assign(Members const& members) const override {
    SegmentNumbers assignment;
    for (std::size_t i = 0; i < members.size(); ++i) {
      assignment.push_back(wanted.contains(members[i]) ? std::optional(i) : std::nullopt);
    }
    return assignment;
  }
  std::unordered_set<torch::nn::Module const*> wanted;
};

/// One forward pass of training under a Recompute policy, as what can be segmented sees it.
struct SegmentedPass {
  Plan const& plan;
  std::size_t kept;     ///< the segment that was last in the pass before: backward begins with it
  std::size_t ran = 0;  ///< segments so far

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// Has the segment that begins now to be recomputed?
  bool recomputes() { return ran++ != kept; }
};

/// That of this thread, where there is one and it has a say here.
inline thread_local SegmentedPass* segmented_pass = nullptr;

inline SegmentedPass* segmented_pass_here() {
  return inside_segment == 0 && at::GradMode::is_enabled() ? segmented_pass : nullptr;
}

template <class Range>
decltype(auto) members_of(Range& list) {
  if constexpr (requires { list.begin(); }) {
    return (list);
  } else {
    return (*list);  // a holder, of a ModuleList
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

/// Some members of a list, one after the other.
template <class Member, class Call>
struct Stretch {
  std::vector<Member> members;
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

/// `for (auto& member : list) x = call(member, x)`, by segments where the recipe has Recompute.
///
/// list  a torch::nn::ModuleList, or any range of holders of modules or pointers to them.
/// x     a tensor, or a tuple or vector of tensors, that goes from each member to the next.
/// call  `(member, x) -> x`; it captures by value, see recompute.
template <class List, class X, class Call>
X each(List&& list, X x, Call call) {
  auto& members = detail::members_of(list);
  using Member = std::remove_cvref_t<decltype(*members.begin())>;
  static_assert(std::copyable<Member> && detail::ModulePointer<Member>,
                "frugal: each goes over modules that are held: a ModuleList, or a range of holders "
                "or shared pointers.");
  detail::SegmentedPass* const pass = detail::segmented_pass_here();
  if (!pass) {
    for (auto& member : members) x = call(member, std::move(x));
    return x;
  }
  std::vector<Member> const all(members.begin(), members.end());
  detail::Members modules;
  for (Member const& member : all) modules.push_back(detail::module_in(member));
  detail::SegmentNumbers const segment = pass->plan.assign(modules);
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    for (end = begin + 1; end < all.size() && segment[begin] && segment[end] == segment[begin];) {
      ++end;
    }
    detail::Stretch<Member, Call> stretch{{all.begin() + static_cast<std::ptrdiff_t>(begin),
                                           all.begin() + static_cast<std::ptrdiff_t>(end)},
                                          call};
    if (!segment[begin]) {
      x = stretch(std::move(x));
    } else if (pass->recomputes()) {
      x = recompute(std::move(stretch), std::move(x));
    } else {
      detail::Inside const inside;
      x = stretch(std::move(x));
    }
  }
  return x;
}

}  // namespace frugal

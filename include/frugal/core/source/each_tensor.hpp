// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/source/fields.hpp>

// Which tensors a batch is made of, found in its type. batch.hpp is for users.
namespace frugal {

template <class B>
struct batch_traits;

namespace detail {

/// A visitor that ignores the tensors, to check whether a type exposes them.
struct Ignore {
  template <class... Parts>
  void operator()(Parts&&...) const {}
};

/// ShowsTensors of a part, which may be made of parts itself.
template <class Part>
struct shows_part;

/// By traits that are written for the type, or for types like it.
template <class B>
concept ShownByTraits = requires(B& batch) { batch_traits<B>::each_tensor(batch, Ignore{}); };

/// `template <class F> void each_tensor(F&& f) { f(ids, mask); }` in the type.
template <class B>
concept DeclaresTensors = requires(B& batch) { batch.each_tensor(Ignore{}); };

/// `static constexpr std::tuple tensors{&Mine::ids, &Mine::mask};` in the type.
template <class List>
inline constexpr bool are_members = false;
template <class... Members>
inline constexpr bool are_members<std::tuple<Members...>> =
    (... && std::is_member_object_pointer_v<Members>);
template <class B>
concept ListsTensors = are_members<std::remove_cvref_t<decltype(B::tensors)>>;

template <class B>
concept OfTuple = TupleLike<B> && []<std::size_t... I>(std::index_sequence<I...>) {
  return sizeof...(I) > 0 && (... && shows_part<std::tuple_element_t<I, B>>::value);
}(std::make_index_sequence<std::tuple_size<B>::value>{});
template <class B>
concept OfMap = Keyed<B> && shows_part<typename B::mapped_type>::value;
template <class B>
concept OfList = Listed<B> && shows_part<typename B::value_type>::value;
template <class B>
concept OfOptional = std::same_as<B, std::optional<typename B::value_type>> &&
                     shows_part<typename B::value_type>::value;
template <class B>
concept OfMembers = DataMember<B> && requires(B const& batch) {
  requires shows_part<std::remove_cvref_t<decltype(batch.data)>>::value;
};
template <class B>
concept OfBothMembers = OfMembers<B> && TargetMember<B> && requires(B const& batch) {
  requires shows_part<std::remove_cvref_t<decltype(batch.target)>>::value;
};

/// Shows its tensors by its type alone, without batch_traits of its own.
template <class B>
concept Transparent = IsTensor<B> || DeclaresTensors<B> || ListsTensors<B> || OfTuple<B> ||
                      OfMap<B> || OfList<B> || OfOptional<B> || OfMembers<B>;

}  // namespace detail

/// A batch whose tensors are known: a tensor; a pair, tuple, array, vector, map or optional of
/// such; a type with members `data` and `target`; one that declares them, or whose batch_traits do.
template <class B>
concept ShowsTensors = detail::Transparent<B> || detail::ShownByTraits<B>;

namespace detail {

template <class Part>
struct shows_part : std::bool_constant<ShowsTensors<Part>> {};

/// Has members `data` and `target`, and other members of unknown content.
template <class B>
concept HidesParts = OfMembers<B> && !DeclaresTensors<B> && !ListsTensors<B> && [] {
  if constexpr (OfBothMembers<B>) {
    return sizeof(B) > sizeof(B::data) + sizeof(B::target);
  } else {
    return sizeof(B) > sizeof(B::data);
  }
}();

template <class B, class F>
void show_tensors(B& batch, F&& f);

/// Wraps `f` for a batch type's each_tensor: accepts several parts at once, and parts that consist
/// of tensors themselves.
template <class F, bool is_const>
struct Shown {
  F& f;

  template <class... Parts>
  void operator()(Parts&&... parts) const {
    (one(parts), ...);
  }

 private:
  template <class Part>
  void one(Part& part) const {
    if constexpr (is_const) {
      show_tensors(std::as_const(part), f);
    } else {
      show_tensors(part, f);
    }
  }
};

template <class F>
inline constexpr bool is_shown = false;
template <class F, bool is_const>
inline constexpr bool is_shown<Shown<F, is_const>> = true;

/// For a batch that is const or not; what is wrapped already stays as it is.
template <class B, class F>
auto shown(F& f) {
  if constexpr (is_shown<std::remove_const_t<F>>) {
    return f;
  } else {
    return Shown<F, std::is_const_v<B>>{f};
  }
}

/// Visits unordered maps in the order of their keys: two of them with the same keys may iterate
/// differently.
template <class B, class Visit>
void each_entry(B& map, Visit&& visit) {
  if constexpr (requires { typename B::key_compare; }) {
    for (auto& entry : map) visit(entry.second);
  } else {
    using Entry = std::remove_reference_t<decltype(*map.begin())>;
    std::vector<Entry*> entries;
    entries.reserve(map.size());
    for (auto& entry : map) entries.push_back(&entry);
    std::sort(entries.begin(), entries.end(), [](Entry const* a, Entry const* b) {
      return std::string_view(a->first) < std::string_view(b->first);
    });
    for (Entry* entry : entries) visit(entry->second);
  }
}

/// By the type alone.
template <class B, class F>
void show_transparent(B& batch, F&& f) {
  using Bare = std::remove_const_t<B>;
  auto const show = shown<B>(f);
  if constexpr (IsTensor<Bare>) {
    f(batch);
  } else if constexpr (DeclaresTensors<B>) {
    batch.each_tensor(show);
  } else if constexpr (DeclaresTensors<Bare>) {
    const_cast<Bare&>(batch).each_tensor(show);  // which shows them as const
  } else if constexpr (ListsTensors<Bare>) {
    std::apply([&](auto... members) { show(batch.*members...); }, Bare::tensors);
  } else if constexpr (OfTuple<Bare>) {
    std::apply(show, batch);
  } else if constexpr (OfMap<Bare>) {
    each_entry(batch, show);
  } else if constexpr (OfList<Bare>) {
    for (auto& part : batch) show(part);
  } else if constexpr (OfOptional<Bare>) {
    if (batch) show(*batch);
  } else if constexpr (OfMembers<Bare>) {
    show(batch.data);
    if constexpr (OfBothMembers<Bare>) show(batch.target);
  }
}

template <class B, class F>
void show_tensors(B& batch, F&& f) {
  using Bare = std::remove_const_t<B>;
  if constexpr (IsTensor<Bare>) {
    f(batch);
  } else {
    auto const show = shown<B>(f);
    if constexpr (requires { batch_traits<Bare>::each_tensor(batch, show); }) {
      batch_traits<Bare>::each_tensor(batch, show);
    } else if constexpr (ShownByTraits<Bare>) {
      batch_traits<Bare>::each_tensor(const_cast<Bare&>(batch), show);  // which shows them as const
    } else {
      show_transparent(batch, show);
    }
  }
}

}  // namespace detail
}  // namespace frugal

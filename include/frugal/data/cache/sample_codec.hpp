// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <frugal/core/source/each_tensor.hpp>
#include <frugal/core/source/fields.hpp>
#include <frugal/data/little_endian.hpp>

// Samples as bytes: for a cache, which keeps them next to their hash. Not a format for exchange.
namespace frugal {
namespace detail {

template <class P>
struct is_cacheable;

/// `static constexpr std::tuple parts{&Mine::ids, &Mine::label};` in the type.
template <class P>
concept ListsParts =
    are_members<std::remove_cvref_t<decltype(P::parts)>> && std::default_initializable<P> &&
    []<std::size_t... I>(std::index_sequence<I...>) {
      using Listed = std::remove_cvref_t<decltype(P::parts)>;
      return (... && is_cacheable<std::remove_cvref_t<
                         decltype(std::declval<P&>().*
                                  std::declval<std::tuple_element_t<I, Listed>>())>>::value);
    }(std::make_index_sequence<std::tuple_size_v<std::remove_cvref_t<decltype(P::parts)>>>{});
template <class P>
concept CacheableTuple = TupleLike<P> && []<std::size_t... I>(std::index_sequence<I...>) {
  return sizeof...(I) > 0 && (... && is_cacheable<std::tuple_element_t<I, P>>::value);
}(std::make_index_sequence<std::tuple_size<P>::value>{});
template <class P>
concept CacheableMap = Keyed<P> && std::same_as<typename P::key_type, std::string> &&
                       is_cacheable<typename P::mapped_type>::value;
template <class P>
concept CacheableList =
    Listed<P> && is_cacheable<typename P::value_type>::value &&
    requires(P& list, typename P::value_type item) { list.push_back(std::move(item)); };
/// std::vector of numbers, but for that of bool: one block of memory.
template <class P>
concept NumberBlock =
    Listed<P> && std::is_arithmetic_v<typename P::value_type> &&
    std::ranges::contiguous_range<P const> && requires(P& list) { list.resize(std::size_t{1}); };
template <class P>
concept CacheableOptional = std::same_as<P, std::optional<typename P::value_type>> &&
                            is_cacheable<typename P::value_type>::value;
/// Batch and torch's Example: nothing besides data and target.
template <class P>
concept CacheableMembers = OfMembers<P> && !HidesParts<P> && !ListsParts<P> && requires(P& sample) {
  requires is_cacheable<std::remove_cvref_t<decltype(sample.data)>>::value;
};

}  // namespace detail

/// A sample that a cache can keep: tensors, numbers, std::string; pairs, tuples, arrays, vectors,
/// optionals and maps (with std::string as key) of these; Batch and its like; and a type that lists
/// all that it consists of:
///
///     struct Tokens {
///       at::Tensor ids;
///       int length = 0;
///       static constexpr std::tuple parts{&Tokens::ids, &Tokens::length};
///     };
template <class P>
concept CacheableSample =
    detail::IsTensor<P> || std::is_arithmetic_v<P> || std::is_enum_v<P> ||
    std::same_as<P, std::string> || detail::ListsParts<P> || detail::CacheableTuple<P> ||
    detail::CacheableMap<P> || detail::CacheableList<P> || detail::CacheableOptional<P> ||
    detail::CacheableMembers<P>;

namespace detail {

template <class P>
struct is_cacheable : std::bool_constant<CacheableSample<P>> {};

/// Calls `visit(part)` for the parts of a sample whose number its type says.
template <class P, class Visit>
void each_fixed_part(P& sample, Visit&& visit) {
  using Bare = std::remove_const_t<P>;
  if constexpr (ListsParts<Bare>) {
    std::apply([&](auto... members) { (visit(sample.*members), ...); }, Bare::parts);
  } else if constexpr (CacheableTuple<Bare>) {
    std::apply([&](auto&... parts) { (visit(parts), ...); }, sample);
  } else {
    visit(sample.data);
    if constexpr (OfBothMembers<Bare>) visit(sample.target);
  }
}

/// The structure of a type, as text: part of a cache's key.
template <CacheableSample P>
std::string sample_signature() {
  if constexpr (IsTensor<P>) {
    return "tensor";
  } else if constexpr (std::is_enum_v<P>) {
    return sample_signature<std::underlying_type_t<P>>();
  } else if constexpr (std::is_arithmetic_v<P>) {
    char const kind = std::is_floating_point_v<P> ? 'f' : std::is_signed_v<P> ? 'i' : 'u';
    return kind + std::to_string(8 * sizeof(P));
  } else if constexpr (std::same_as<P, std::string>) {
    return "text";
  } else if constexpr (CacheableMap<P>) {
    return "map of " + sample_signature<typename P::mapped_type>();
  } else if constexpr (CacheableOptional<P>) {
    return "optional " + sample_signature<typename P::value_type>();
  } else if constexpr (CacheableList<P>) {
    return "list of " + sample_signature<typename P::value_type>();
  } else {
    std::string text = "(";
    auto const show = [&]<class Part>(std::type_identity<Part>) {
      text += (text.size() > 1 ? ", " : "") + sample_signature<Part>();
    };
    if constexpr (ListsParts<P>) {
      std::apply(
          [&](auto... members) {
            (show(std::type_identity<std::remove_cvref_t<decltype(std::declval<P&>().*members)>>()),
             ...);
          },
          P::parts);
    } else if constexpr (CacheableTuple<P>) {
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        (show(std::type_identity<std::tuple_element_t<I, P>>()), ...);
      }(std::make_index_sequence<std::tuple_size<P>::value>{});
    } else {
      show(std::type_identity<std::remove_cvref_t<decltype(std::declval<P&>().data)>>());
      if constexpr (OfBothMembers<P>) {
        show(std::type_identity<std::remove_cvref_t<decltype(std::declval<P&>().target)>>());
      }
    }
    return text + ")";
  }
}

/// Bytes of a sample's content, without what describes it.
template <CacheableSample P>
std::uint64_t content_bytes(P const& part) {
  if constexpr (IsTensor<P>) {
    return part.defined() ? part.nbytes() : 0;
  } else if constexpr (std::is_arithmetic_v<P> || std::is_enum_v<P>) {
    return sizeof part;
  } else if constexpr (std::same_as<P, std::string>) {
    return part.size();
  } else {
    std::uint64_t bytes = 0;
    if constexpr (CacheableMap<P>) {
      for (auto const& entry : part) bytes += content_bytes(entry.second);
    } else if constexpr (CacheableOptional<P>) {
      if (part) bytes += content_bytes(*part);
    } else if constexpr (CacheableList<P>) {
      for (typename P::value_type const& item : part) bytes += content_bytes(item);
    } else {
      each_fixed_part(part, [&](auto const& inner) { bytes += content_bytes(inner); });
    }
    return bytes;
  }
}

/// Appends a sample.
class SampleEncoder {
 public:
  template <CacheableSample P>
  void add(P const& part) {
    if constexpr (IsTensor<P>) {
      add_tensor(part);
    } else if constexpr (std::is_arithmetic_v<P> || std::is_enum_v<P>) {
      append_le(bytes_, part);
    } else if constexpr (std::same_as<P, std::string>) {
      append_le(bytes_, std::uint64_t{part.size()});
      append_text(bytes_, part);
    } else if constexpr (CacheableMap<P>) {
      append_le(bytes_, std::uint64_t{part.size()});
      for (auto const& [key, value] : part) {
        add(key);
        add(value);
      }
    } else if constexpr (CacheableOptional<P>) {
      append_le(bytes_, static_cast<std::uint8_t>(part.has_value()));
      if (part) add(*part);
    } else if constexpr (CacheableList<P>) {
      append_le(bytes_, std::uint64_t{part.size()});
      if constexpr (NumberBlock<P>) {
        append_bytes(bytes_, std::as_bytes(std::span(part)));
      } else {
        for (typename P::value_type const& item : part) add(item);
      }
    } else {
      each_fixed_part(part, [this](auto const& inner) { this->add(inner); });
    }
  }

  std::vector<std::byte> const& bytes() const noexcept { return bytes_; }
  void clear() noexcept { bytes_.clear(); }

 private:
  void add_tensor(at::Tensor const& tensor);

  std::vector<std::byte> bytes_;
};

/// Reads a sample that SampleEncoder wrote. DataError for bytes that are none; nothing outside of
/// them is read, and no memory is set aside that they cannot fill.
class SampleDecoder {
 public:
  SampleDecoder(std::span<std::byte const> bytes, std::string name)
      : bytes_(bytes), name_(std::move(name)) {}

  template <CacheableSample P>
  P all() {
    P sample = read<P>();
    if (!bytes_.empty()) fail("bytes follow the sample");
    return sample;
  }

 private:
  template <CacheableSample P>
  P read() {
    if constexpr (IsTensor<P>) {
      return read_tensor();
    } else if constexpr (std::same_as<P, bool>) {
      return number<std::uint8_t>() != 0;
    } else if constexpr (std::is_arithmetic_v<P> || std::is_enum_v<P>) {
      return number<P>();
    } else if constexpr (std::same_as<P, std::string>) {
      auto const text = take(number<std::uint64_t>());
      return {reinterpret_cast<char const*>(text.data()), text.size()};
    } else if constexpr (CacheableMap<P>) {
      P map;
      for (auto left = count(); left > 0; --left) {
        auto key = read<std::string>();
        map.emplace(std::move(key), read<typename P::mapped_type>());
      }
      return map;
    } else if constexpr (CacheableOptional<P>) {
      if (number<std::uint8_t>() == 0) return std::nullopt;
      return read<typename P::value_type>();
    } else if constexpr (CacheableList<P>) {
      P list;
      if constexpr (NumberBlock<P>) {
        constexpr std::uint64_t size = sizeof(typename P::value_type);
        std::uint64_t const items = count();
        auto const block = take(items * size);  // fewer than 2^64: count() is at most bytes_
        list.resize(items);
        if (items != 0) std::memcpy(list.data(), block.data(), block.size());
        return list;
      }
      for (auto left = count(); left > 0; --left) list.push_back(read<typename P::value_type>());
      return list;
    } else if constexpr (CacheableTuple<P> && !ListsParts<P>) {
      return [this]<std::size_t... I>(std::index_sequence<I...>) {
        return P{this->template read<std::tuple_element_t<I, P>>()...};  // braces: in their order
      }(std::make_index_sequence<std::tuple_size<P>::value>{});
    } else if constexpr (ListsParts<P>) {
      P sample{};
      each_fixed_part(sample,
                      [this]<class Part>(Part& part) { part = this->template read<Part>(); });
      return sample;
    } else if constexpr (OfBothMembers<P>) {
      return P{read<std::remove_cvref_t<decltype(std::declval<P&>().data)>>(),
               read<std::remove_cvref_t<decltype(std::declval<P&>().target)>>()};
    } else {
      return P{read<std::remove_cvref_t<decltype(std::declval<P&>().data)>>()};
    }
  }

  at::Tensor read_tensor();

  template <class Number>
  Number number() {
    return load_le<Number>(take(sizeof(Number)), 0);
  }
  /// Reads the number of items that follow, each of which has at least one byte.
  std::uint64_t count();
  std::span<std::byte const> take(std::uint64_t size);

  [[noreturn]] void fail(std::string why) const;

  std::span<std::byte const> bytes_;
  std::string name_;
};

}  // namespace detail
}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/data/cache/sample_codec.ipp>
#endif

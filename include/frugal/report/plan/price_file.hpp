// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/base/json.hpp>
#include <frugal/report/plan/prices.hpp>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace frugal::plan {

namespace detail {

/// "12:7": line and column of a byte, both from 1. A column counts characters, as editors do.
std::string line_and_column(std::string_view text, std::size_t byte);

/// Reads one price file. Every fault is a SettingsError with line and column.
class PriceFile {
  using Json = frugal::detail::Json;

 public:
  /// A byte-order mark at the beginning is skipped, as editors do.
  PriceFile(std::string_view text, std::string name) : text_(text), name_(std::move(name)) {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (text_.starts_with(mark)) text_.remove_prefix(mark.size());
  }

  PriceTable read() const;

 private:
  Device device(Json const& entry) const;

  Offer offer(Json const& entry, DeviceTable const& devices) const;

  Price price(Json const& entry, char const* key, std::string_view per, unsigned devices) const;

  /// Refuses what is no object, a member that is there twice and, if `names` has any, unknown ones.
  void only(Json const& value, std::initializer_list<std::string_view> names) const;
  /// `folded`: as the tables find names, whatever their case.
  void unique(std::vector<std::string>& seen, std::string const& name, Json const& value,
              bool folded = false) const;
  Json const& member(Json const& parent, std::string_view key) const;
  std::vector<Json const*> array(Json const& parent, char const* key) const;
  std::string text(Json const& parent, char const* key, bool needed = false) const;
  double number(Json const& parent, std::string_view key) const;
  double above_zero(Json const& parent, std::string_view key) const;
  /// Refuses values that no device or price reaches, and that would overflow in the arithmetic.
  void at_most(Json const& parent, std::string_view key, double value) const {
    if (value > 1e9) fail(member(parent, key), "\"" + std::string(key) + "\" is above 1e9");
  }

  [[noreturn]] void fail(Json const& value, std::string why) const {
    fail(value.at(), std::move(why));
  }
  [[noreturn]] void fail(std::size_t byte, std::string why) const;

  std::string_view text_;
  std::string name_;
};

}  // namespace detail

/// Devices and prices from the text of a price file; `name` is for messages. Its prices replace all
/// built-in ones; its devices are added to the built-in ones, or replace those of the same name.
inline PriceTable parse_prices(std::string_view text, std::string name) {
  return detail::PriceFile(text, std::move(name)).read();
}

/// Throws StoreError if the file cannot be read.
PriceTable read_prices(std::filesystem::path const& path);

}  // namespace frugal::plan

#ifndef FRUGAL_COMPILED
#include <frugal/report/plan/price_file.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/error.hpp>
#include <frugal/store/hash.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// A checkpoint of a newer format than this library knows: whole perhaps, and not to be judged
/// here.
struct NewerFormatError : FormatError {
  using FormatError::FormatError;
};

/// One file of a checkpoint, as it was written.
struct FileEntry {
  std::string name;        ///< without any folder
  std::uint64_t size = 0;  ///< in bytes
  std::uint64_t hash = 0;  ///< XXH3, 64 bits

  bool operator==(FileEntry const&) const = default;
};

/// What a checkpoint consists of: manifest.json, which is written after everything else.
///
/// Its last line holds the hash of all bytes before it, so that a change to the manifest is found
/// like one to any other file. The rest is plain JSON for whoever wants to read it.
struct Manifest {
  static constexpr std::string_view file_name = "manifest.json";
  static constexpr std::uint64_t newest_version = 1;
  static constexpr std::size_t largest = std::size_t{16} << 20;  ///< bytes that are read at most

  std::uint64_t step = 0;     ///< optimizer steps done
  std::uint64_t serial = 0;   ///< counts the saves of a run; decides which one is the newest
  std::int64_t saved_at = 0;  ///< seconds since 1970, UTC; only ages are made of it
  std::map<std::string, double> metrics;  ///< of this step; one that is not finite reads as NaN
  std::vector<FileEntry> files;

  std::string text() const;

  /// `where` is the file's path, for errors. FormatError for what is damaged or is no manifest,
  /// NewerFormatError for a version that is not known here.
  static Manifest parse(std::string_view text, std::filesystem::path const& where);
};

namespace detail {

inline std::span<std::byte const> bytes_of(std::string_view text) {
  return std::as_bytes(std::span<char const>(text.data(), text.size()));
}

/// A name that cannot lead out of the checkpoint's folder, nor to the manifest itself.
inline bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         name != Manifest::file_name && std::none_of(name.begin(), name.end(), [](char c) {
           return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

/// Reads the fields of a manifest whose hash was right.
class ManifestReader {
 public:
  ManifestReader(std::filesystem::path const& where) : where_(where) {}

  Manifest read(std::string_view text) const {
    using nlohmann::json;
    json const all = json::parse(text.begin(), text.end(), nullptr, false);
    if (!all.is_object()) fail("it is no JSON object");
    if (auto const found = all.find("format");
        found == all.end() || !found->is_string() || *found != "frugal checkpoint") {
      fail("\"format\" does not say \"frugal checkpoint\"");
    }
    if (std::uint64_t const version = number(all, "version"); version > Manifest::newest_version) {
      throw NewerFormatError(
          {.what = "the checkpoint is of a newer format",
           .where = where_.string(),
           .why = "its version is " + std::to_string(version) + ", and this library knows up to " +
                  std::to_string(Manifest::newest_version),
           .mend = "Update frugal, or move this checkpoint out of the run directory."});
    }
    Manifest out;
    out.step = number(all, "step");
    out.serial = number(all, "serial");
    out.saved_at = static_cast<std::int64_t>(number(all, "saved_at"));
    json const& metrics = member(all, "metrics");
    if (!metrics.is_object()) fail("\"metrics\" is no object");
    for (auto const& [name, value] : metrics.items()) {
      if (!value.is_number() && !value.is_null()) fail("the metric \"" + name + "\" is no number");
      out.metrics[name] =
          value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
    }
    json const& files = member(all, "files");
    if (!files.is_array()) fail("\"files\" is no array");
    for (json const& file : files) out.files.push_back(entry(file, out.files));
    return out;
  }

  [[noreturn]] void fail(std::string why) const {
    throw FormatError({.what = "the manifest of a checkpoint is damaged",
                       .where = where_.string(),
                       .why = std::move(why),
                       .mend = "Use another checkpoint, or restore this one from a copy."});
  }

 private:
  nlohmann::json const& member(nlohmann::json const& object, char const* name) const {
    if (!object.is_object()) fail("an object is missing where \"" + std::string(name) + "\" goes");
    auto const found = object.find(name);
    if (found == object.end()) fail("\"" + std::string(name) + "\" is missing");
    return *found;
  }

  std::uint64_t number(nlohmann::json const& object, char const* name) const {
    nlohmann::json const& value = member(object, name);
    if (!value.is_number_unsigned() ||
        value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      fail("\"" + std::string(name) + "\" is no number from 0 to 2^63 - 1");
    }
    return value.get<std::uint64_t>();
  }

  FileEntry entry(nlohmann::json const& file, std::vector<FileEntry> const& before) const {
    nlohmann::json const& name = member(file, "name");
    if (!name.is_string() || !is_file_name(name.get_ref<std::string const&>())) {
      fail("a file has a name that is none");
    }
    FileEntry out{.name = name.get<std::string>(), .size = number(file, "size"), .hash = 0};
    if (std::any_of(before.begin(), before.end(),
                    [&](FileEntry const& other) { return other.name == out.name; })) {
      fail("\"" + out.name + "\" is listed twice");
    }
    nlohmann::json const& hash = member(file, "xxh3");
    std::string const text = hash.is_string() ? hash.get<std::string>() : "";
    for (char const c : text) {
      auto const digit = std::string_view("0123456789abcdef").find(c);
      if (digit == std::string_view::npos) fail("a hash has a digit that is none");
      out.hash = out.hash << 4 | digit;
    }
    if (text.size() != 16) fail("a hash does not have 16 digits");
    return out;
  }

  std::filesystem::path const& where_;
};

inline constexpr std::string_view manifest_seal = ",\n  \"xxh3\": \"";

}  // namespace detail

inline std::string Manifest::text() const {
  nlohmann::ordered_json all;
  all["format"] = "frugal checkpoint";
  all["version"] = newest_version;
  all["step"] = step;
  all["serial"] = serial;
  all["saved_at"] = saved_at < 0 ? 0 : saved_at;
  all["metrics"] = nlohmann::ordered_json::object();
  for (auto const& [name, value] : metrics) {
    all["metrics"][name] = std::isfinite(value) ? nlohmann::ordered_json(value) : nullptr;
  }
  all["files"] = nlohmann::ordered_json::array();
  for (FileEntry const& file : files) {
    all["files"].push_back({{"name", file.name}, {"size", file.size}, {"xxh3", hex_of(file.hash)}});
  }
  // A metric's name may be any bytes; what is no UTF-8 becomes U+FFFD instead of an exception.
  std::string out = all.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  out.resize(out.size() - 2);  // "\n}"
  std::uint64_t const hash = Hash::of(detail::bytes_of(out));
  return out.append(detail::manifest_seal).append(hex_of(hash)).append("\"\n}\n");
}

inline Manifest Manifest::parse(std::string_view text, std::filesystem::path const& where) {
  detail::ManifestReader const reader(where);
  std::size_t const tail = detail::manifest_seal.size() + 16 + 4;
  if (text.size() <= tail) reader.fail("it is cut off");
  std::string_view const body = text.substr(0, text.size() - tail);
  std::string const seal =
      std::string(detail::manifest_seal) + hex_of(Hash::of(detail::bytes_of(body))) + "\"\n}\n";
  if (text.substr(body.size()) != seal) {
    reader.fail("its last line does not hold the hash of what stands before it");
  }
  return reader.read(text);
}

}  // namespace frugal

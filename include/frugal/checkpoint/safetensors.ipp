// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/checkpoint/safetensors.hpp>

#include <frugal/base/in_order.hpp>
#include <frugal/base/json.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <array>
#include <charconv>
#include <cstring>

namespace frugal::detail {

FRUGAL_INLINE std::string safetensors_quoted(std::string_view text) {
  constexpr std::size_t most = 100;
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  for (char const c : text.substr(0, most)) {
    if (auto const code = static_cast<unsigned char>(c); code < 0x20 || code >= 0x7f) {
      out += "\\x";
      out += digits[code >> 4];
      out += digits[code & 15U];
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  out += '"';
  if (text.size() > most) out += " and " + std::to_string(text.size() - most) + " bytes more";
  return out;
}

FRUGAL_INLINE void safetensors_fail(std::string const& file, std::string const& part,
                                    std::uint64_t byte, std::string what, std::string why,
                                    std::string fix) {
  std::string where = file;
  if (!part.empty()) where += ", " + part;
  if (byte != safetensors_no_place) where += ", byte " + std::to_string(byte);
  throw FormatError({.what = std::move(what),
                     .where = std::move(where),
                     .why = std::move(why),
                     .fix = std::move(fix)});
}

/// Reads the JSON of a header event by event: a document tree would silently drop duplicate keys
/// and take many times the header's memory.
class SafetensorsHeaderReader : public NumbersAsWritten {
 public:
  /// `json` without the padding; `name` is the file's name, for errors.
  SafetensorsHeaderReader(std::string_view json, std::string const& name);

  SafetensorsHeader read() &&;

  // RapidJSON calls these. true means continue; faults are reported by exceptions alone.

  bool StartObject();

  bool Key(char const* begin, unsigned size, bool);

  bool String(char const* begin, unsigned size, bool);

  bool RawNumber(char const*, unsigned size, bool);

  bool StartArray();

  bool EndArray(unsigned);

  bool EndObject(unsigned);

  bool Null() { unexpected("null"); }
  bool Bool(bool) { unexpected("a truth value"); }

 private:
  /// What may come next.
  enum class State : std::uint8_t {
    root,
    names,
    metadata_object,
    metadata_keys,
    metadata_value,
    tensor_object,
    fields,
    dtype,
    shape_array,
    shape,
    offsets_array,
    begin,
    end,
    offsets_close,
    done,
  };

  static constexpr std::array<std::string_view, 3> field_names{"dtype", "shape", "data_offsets"};

  bool to(State next);

  void require_characters(std::string_view text) const {
    if (!is_json_text(text)) damaged("the header is not JSON", "a text has half a surrogate pair");
  }

  std::uint64_t whole(std::string_view digits) const;

  bool field(std::string_view name);

  /// File offset of the current token.
  std::uint64_t offset() const;

  std::string part() const;

  [[noreturn]] void unexpected(std::string const& found) const;

  [[noreturn]] void damaged(std::string what, std::string why = {},
                            std::string fix = safetensors_mend) const;

  std::string const& name_;
  std::string_view json_;
  JsonStream stream_;         ///< over the header's own copy of the text
  std::size_t previous_ = 0;  ///< end of the previous token
  SafetensorsHeader header_;
  State state_ = State::root;
  unsigned fields_ = 0;  ///< of the current tensor, one bit each
  bool metadata_seen_ = false;
};

/// Checks a header against the bytes of data that follow it, and sorts its tensors by offset.
/// Afterwards every tensor's range lies inside the data and has the size that its shape and dtype
/// require, and every byte of data belongs to exactly one tensor.
class SafetensorsLayout {
 public:
  SafetensorsLayout(SafetensorsHeader& header, std::string const& name, std::uint64_t data_at,
                    std::uint64_t data_size)
      : header_(header), name_(name), data_at_(data_at), data_size_(data_size) {}

  /// Returns the tensors' indices sorted by name. Unlike a hash table, binary search over them
  /// cannot be slowed down by chosen names.
  std::vector<std::uint32_t> check();

 private:
  std::vector<std::uint32_t> index_names() const;

  void sort_metadata();

  void check_size(SafetensorsEntry const& tensor) const;

  void check_cover() const;

  static std::string range(SafetensorsEntry const& tensor) {
    return "[" + std::to_string(tensor.begin) + "," + std::to_string(tensor.end) + "]";
  }

  [[noreturn]] void fail(SafetensorsEntry const& tensor, std::uint64_t byte, std::string what,
                         std::string why) const {
    fail(safetensors_tensor(tensor.name), byte, std::move(what), std::move(why));
  }

  [[noreturn]] void fail(std::string const& part, std::uint64_t byte, std::string what,
                         std::string why) const {
    safetensors_fail(name_, part, byte, std::move(what), std::move(why));
  }

  SafetensorsHeader& header_;
  std::string const& name_;
  std::uint64_t data_at_;
  std::uint64_t data_size_;
};

FRUGAL_INLINE SafetensorsHeaderReader::SafetensorsHeaderReader(std::string_view json,
                                                               std::string const& name)
    : name_(name), json_(json), stream_(nullptr, 0) {
  // Strings are parsed in place, so that views into this copy stay valid.
  header_.text = std::make_unique_for_overwrite<char[]>(json.size());
  std::copy(json.begin(), json.end(), header_.text.get());
  stream_ = JsonStream(header_.text.get(), json.size());
}

FRUGAL_INLINE SafetensorsHeader SafetensorsHeaderReader::read() && {
  if (auto const error = parse_json(stream_, *this)) {
    if (state_ == State::done) {
      safetensors_fail(name_, "", safetensors_length_bytes + previous_,
                       "the header's object is followed by more than spaces", "");
    }
    safetensors_fail(name_, part(), safetensors_length_bytes + error->at, "the header is not JSON",
                     "RapidJSON says " + safetensors_quoted(error->why));
  }
  if (previous_ != json_.size()) {
    safetensors_fail(name_, "", safetensors_length_bytes + previous_,
                     "the header's object is followed by more than spaces", "");
  }
  return std::move(header_);
}

FRUGAL_INLINE bool SafetensorsHeaderReader::StartObject() {
  switch (state_) {
    case State::root:
      return to(State::names);
    case State::metadata_object:
      return to(State::metadata_keys);
    case State::tensor_object:
      return to(State::fields);
    default:
      unexpected("an object");
  }
}

FRUGAL_INLINE bool SafetensorsHeaderReader::Key(char const* begin, unsigned size, bool) {
  std::string_view const text(begin, size);
  require_characters(text);
  if (state_ == State::metadata_keys) {
    header_.metadata.push_back({.key = text, .value = {}, .offset = offset()});
    return to(State::metadata_value);
  }
  if (state_ == State::fields) return field(text);
  if (text != safetensors_metadata_key) {
    header_.tensors.push_back({.name = text,
                               .shape = static_cast<std::uint32_t>(header_.extents.size()),
                               .offset = static_cast<std::uint32_t>(offset())});
    fields_ = 0;
    return to(State::tensor_object);
  }
  if (metadata_seen_) damaged("__metadata__ stands twice in the header");
  metadata_seen_ = true;
  return to(State::metadata_object);
}

FRUGAL_INLINE bool SafetensorsHeaderReader::String(char const* begin, unsigned size, bool) {
  std::string_view const text(begin, size);
  require_characters(text);
  if (state_ == State::metadata_value) {
    header_.metadata.back().value = text;
    return to(State::metadata_keys);
  }
  if (state_ != State::dtype) unexpected("a string");
  auto const dtype = dtype_of(text);
  if (!dtype) {
    damaged("the element type is unknown",
            "the header says " + safetensors_quoted(text) +
                ", which is not one of the known types from BOOL to U64",
            "Update frugal: the file may have a newer version of the format.");
  }
  header_.tensors.back().dtype = *dtype;
  return to(State::fields);
}

FRUGAL_INLINE bool SafetensorsHeaderReader::RawNumber(char const*, unsigned size, bool) {
  std::uint64_t const number = whole(stream_.last(size));
  auto& tensor = header_.tensors;
  if (state_ == State::shape) {
    header_.extents.push_back(number);
    ++tensor.back().rank;
    return to(State::shape);
  }
  if (state_ == State::begin) {
    tensor.back().begin = number;
    return to(State::end);
  }
  if (state_ != State::end) unexpected("a number");
  tensor.back().end = number;
  return to(State::offsets_close);
}

FRUGAL_INLINE bool SafetensorsHeaderReader::StartArray() {
  if (state_ == State::shape_array) return to(State::shape);
  if (state_ == State::offsets_array) return to(State::begin);
  unexpected("an array");
}

FRUGAL_INLINE bool SafetensorsHeaderReader::EndArray(unsigned) {
  if (state_ != State::shape && state_ != State::offsets_close) unexpected("the array's end");
  return to(State::fields);
}

FRUGAL_INLINE bool SafetensorsHeaderReader::EndObject(unsigned) {
  if (state_ == State::names) return to(State::done);
  if (state_ == State::metadata_keys) return to(State::names);
  if (fields_ != 7) {
    std::string missing;
    for (std::size_t i = 0; i < field_names.size(); ++i) {
      if ((fields_ >> i & 1U) != 0) continue;
      missing.append(missing.empty() ? "" : " and ").append(field_names[i]);
    }
    damaged("the tensor has no " + missing);
  }
  return to(State::names);
}

FRUGAL_INLINE bool SafetensorsHeaderReader::to(State next) {
  state_ = next;
  previous_ = stream_.Tell();
  return true;
}

FRUGAL_INLINE std::uint64_t SafetensorsHeaderReader::whole(std::string_view digits) const {
  std::uint64_t number = 0;
  char const* const begin = digits.data();
  char const* const end = begin + digits.size();
  auto const [stop, error] = std::from_chars(begin, end, number);
  if (digits.front() == '-') unexpected("a negative number");
  if (error != std::errc() || stop != end) {
    unexpected("a number with a fraction or exponent, or beyond 64 bits");
  }
  return number;
}

FRUGAL_INLINE bool SafetensorsHeaderReader::field(std::string_view name) {
  constexpr std::array next{State::dtype, State::shape_array, State::offsets_array};
  for (std::size_t i = 0; i < field_names.size(); ++i) {
    if (name != field_names[i]) continue;
    if ((fields_ >> i & 1U) != 0) damaged("the tensor has " + std::string(name) + " twice");
    fields_ |= 1U << i;
    return to(next[i]);
  }
  damaged("the tensor has a field that the format does not know",
          "expected dtype, shape and data_offsets, found " + safetensors_quoted(name));
}

FRUGAL_INLINE std::uint64_t SafetensorsHeaderReader::offset() const {
  std::size_t at = previous_;
  while (at < json_.size() && std::string_view(" \t\r\n,:").find(json_[at]) != std::string::npos) {
    ++at;
  }
  return safetensors_length_bytes + at;
}

FRUGAL_INLINE std::string SafetensorsHeaderReader::part() const {
  if (state_ == State::root || state_ == State::names || state_ == State::done) return {};
  if (state_ <= State::metadata_value) return "__metadata__";
  return safetensors_tensor(header_.tensors.back().name);
}

FRUGAL_INLINE void SafetensorsHeaderReader::unexpected(std::string const& found) const {
  static constexpr std::string_view number = "a whole number from 0 to 2^64 - 1";
  static constexpr std::array<std::string_view, 15> expected{"an object", "a tensor's name",
                                                             "an object", "a key",
                                                             "a string",  "an object",
                                                             "a field",   "a string",
                                                             "an array",  number,
                                                             "an array",  number,
                                                             number,      "the end of two offsets",
                                                             "the end"};
  damaged(
      "the header has something else than it should",
      "expected " + std::string(expected[static_cast<std::size_t>(state_)]) + ", found " + found);
}

FRUGAL_INLINE void SafetensorsHeaderReader::damaged(std::string what, std::string why,
                                                    std::string fix) const {
  safetensors_fail(name_, part(), offset(), std::move(what), std::move(why), std::move(fix));
}

FRUGAL_INLINE std::vector<std::uint32_t> SafetensorsLayout::check() {
  auto const by_range = [](auto const& a, auto const& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.end != b.end ? a.end < b.end : a.offset < b.offset;
  };
  auto& tensors = header_.tensors;
  if (!std::is_sorted(tensors.begin(), tensors.end(), by_range)) {
    put_in_order(tensors, by_range);
  }
  std::vector<std::uint32_t> index = index_names();
  sort_metadata();
  for (SafetensorsEntry const& tensor : tensors) check_size(tensor);
  check_cover();
  return index;
}

FRUGAL_INLINE std::vector<std::uint32_t> SafetensorsLayout::index_names() const {
  auto const& tensors = header_.tensors;
  auto const order = positions_in_order(tensors.size(), [&](std::size_t a, std::size_t b) {
    return tensors[a].name < tensors[b].name;
  });
  std::vector<std::uint32_t> index(order.begin(), order.end());
  for (std::size_t i = 1; i < index.size(); ++i) {
    auto const& a = tensors[index[i - 1]];
    auto const& b = tensors[index[i]];
    if (a.name != b.name) continue;
    fail(b.offset > a.offset ? b : a, std::max(a.offset, b.offset),
         "the header has two tensors of one name",
         "the other one stands at byte " + std::to_string(std::min(a.offset, b.offset)));
  }
  return index;
}

FRUGAL_INLINE void SafetensorsLayout::sort_metadata() {
  auto& texts = header_.metadata;
  put_in_order(texts, [](SafetensorsText const& a, SafetensorsText const& b) {
    return a.key != b.key ? a.key < b.key : a.offset < b.offset;
  });
  auto const twice = std::adjacent_find(
      texts.begin(), texts.end(), [](auto const& a, auto const& b) { return a.key == b.key; });
  if (twice == texts.end()) return;
  fail("__metadata__", twice[1].offset, "a key stands twice in the metadata",
       safetensors_quoted(twice->key) + " stands at byte " + std::to_string(twice->offset) +
           " as well");
}

FRUGAL_INLINE void SafetensorsLayout::check_size(SafetensorsEntry const& tensor) const {
  if (tensor.begin > tensor.end) {
    fail(tensor, tensor.offset, "the tensor ends before it begins",
         "its data_offsets are " + range(tensor));
  }
  auto const bits =
      tensor_bits(tensor.dtype, std::span(header_.extents).subspan(tensor.shape, tensor.rank));
  if (!bits) {
    fail(tensor, tensor.offset, "the tensor is too large",
         "the product of its extents does not fit into 64 bits");
  }
  if (*bits % 8 != 0) {
    fail(tensor, tensor.offset, "the tensor ends within a byte",
         std::to_string(*bits) + " bits of " + std::string(dtype_name(tensor.dtype)) +
             " are not a whole number of bytes");
  }
  if (*bits / 8 != tensor.end - tensor.begin) {
    fail(tensor, tensor.offset, "the tensor's shape does not fit its bytes",
         "its shape of " + std::string(dtype_name(tensor.dtype)) + " takes " +
             std::to_string(*bits / 8) + " bytes, and its data_offsets " + range(tensor) + " are " +
             std::to_string(tensor.end - tensor.begin));
  }
}

FRUGAL_INLINE void SafetensorsLayout::check_cover() const {
  std::uint64_t covered = 0;
  SafetensorsEntry const* last = nullptr;
  for (SafetensorsEntry const& tensor : header_.tensors) {
    if (tensor.begin > covered) {
      fail(tensor, data_at_ + covered, "there is a hole before the tensor",
           "bytes " + std::to_string(covered) + " to " + std::to_string(tensor.begin) +
               " of the data belong to no tensor");
    }
    if (tensor.begin < covered) {
      fail(tensor, data_at_ + tensor.begin, "the tensor overlaps another one",
           "its data_offsets are " + range(tensor) + ", and those of " +
               safetensors_tensor(last->name) + " are " + range(*last));
    }
    if (tensor.end > data_size_) {
      fail(tensor, data_at_ + data_size_, "the file is cut off",
           "the tensor ends at byte " + std::to_string(tensor.end) + " of the data, and " +
               std::to_string(data_size_) + " bytes of data are there");
    }
    covered = tensor.end;
    last = &tensor;
  }
  if (covered != data_size_) {
    fail("", data_at_ + covered, "bytes follow the last tensor",
         std::to_string(data_size_ - covered) + " bytes belong to no tensor");
  }
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE Safetensors Safetensors::open(std::filesystem::path const& path) {
  MappedFile file(path);
  Safetensors tensors(file.bytes(), path.string());
  tensors.file_ = std::move(file);
  return tensors;
}

FRUGAL_INLINE TensorView Safetensors::operator[](std::size_t i) const {
  auto const& tensor = header_.tensors[i];
  return {.name = tensor.name,
          .dtype = tensor.dtype,
          .shape = std::span(header_.extents).subspan(tensor.shape, tensor.rank),
          .bytes = data_.subspan(tensor.begin, tensor.end - tensor.begin)};
}

FRUGAL_INLINE std::optional<TensorView> Safetensors::find(std::string_view name) const {
  auto const at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [this](std::uint32_t i, std::string_view key) { return header_.tensors[i].name < key; });
  if (at == by_name_.end() || header_.tensors[*at].name != name) return std::nullopt;
  return (*this)[*at];
}

FRUGAL_INLINE TensorView Safetensors::at(std::string_view name) const {
  if (auto const tensor = find(name)) return *tensor;
  detail::safetensors_fail(name_, detail::safetensors_tensor(name), detail::safetensors_no_place,
                           "the file does not have the tensor",
                           "it has " + std::to_string(size()) + " others",
                           "Use a file that was written for this model.");
}

FRUGAL_INLINE std::optional<std::string_view> Safetensors::metadata(std::string_view key) const {
  auto const& texts = header_.metadata;
  auto const at =
      std::lower_bound(texts.begin(), texts.end(), key,
                       [](auto const& text, std::string_view wanted) { return text.key < wanted; });
  if (at == texts.end() || at->key != key) return std::nullopt;
  return at->value;
}

FRUGAL_INLINE std::vector<std::pair<std::string_view, std::string_view>> Safetensors::metadata()
    const {
  std::vector<std::pair<std::string_view, std::string_view>> all;
  all.reserve(header_.metadata.size());
  for (auto const& text : header_.metadata) all.emplace_back(text.key, text.value);
  return all;
}

FRUGAL_INLINE Safetensors::Safetensors(std::span<std::byte const> bytes, std::string name)
    : name_(std::move(name)) {
  std::string_view json = header_of(bytes);
  std::uint64_t const data_at = detail::safetensors_length_bytes + json.size();
  data_ = bytes.subspan(data_at);
  // Up to 100 MB of padding need no parser.
  json = json.substr(0, json.find_last_not_of(' ') + 1);
  header_ = detail::SafetensorsHeaderReader(json, name_).read();
  by_name_ = detail::SafetensorsLayout(header_, name_, data_at, data_.size()).check();
}

FRUGAL_INLINE std::string_view Safetensors::header_of(std::span<std::byte const> bytes) const {
  constexpr std::uint64_t length_bytes = detail::safetensors_length_bytes;
  if (bytes.size() < length_bytes) {
    damaged(bytes.size(), bytes.empty() ? "the file is empty" : "the file is cut off",
            "expected 8 bytes with the header's length, found " + std::to_string(bytes.size()));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), length_bytes);
  if (length > detail::safetensors_most_header) {
    damaged(0, "this is not a safetensors file, or its header is too large",
            "a header has at most 100000000 bytes, and this one claims " + std::to_string(length));
  }
  std::string_view const json(reinterpret_cast<char const*>(bytes.data()) + length_bytes,
                              std::min(length, bytes.size() - length_bytes));
  // Checked before the end: in a file of another format the length means nothing.
  if (length == 0 || (!json.empty() && json.front() != '{')) {
    damaged(length == 0 ? 0 : length_bytes, "this is not a safetensors file",
            length == 0 ? "its header is empty"
                        : "a header begins with {, and this one with " +
                              detail::safetensors_quoted(json.substr(0, 1)));
  }
  if (json.size() < length) {
    damaged(bytes.size(), "the file is cut off",
            "expected " + std::to_string(length) + " bytes of header, found " +
                std::to_string(json.size()));
  }
  return json;
}

}  // namespace frugal

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/step/manifest.hpp>

#include <frugal/base/file.hpp>
#include <frugal/base/hash.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/utf8.hpp>
#include <frugal/checkpoint/manifest.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>

namespace frugal::detail {

inline constexpr char step_mend[] = "Export the package again.";

/// Reads the parts of a step package's manifest.
class StepManifestReader {
 public:
  StepManifestReader(std::string_view text, std::filesystem::path const& where);

  StepManifest read() const;

 private:
  using Tensor = StepManifest::Tensor;
  using Program = StepManifest::Program;

  std::vector<std::int64_t> numbers(Json const& parent, char const* name) const;
  std::int64_t size(Json const& value, char const* of) const;
  bool truth(Json const& parent, char const* name) const;
  StepManifest::File file(Json const& from) const;
  std::vector<Tensor> tensors(char const* name, std::set<std::string>& names,
                              bool parameters) const;
  Program program(Json const& from, StepManifest const& all) const;
  StepManifest::Input input(Json const& from, StepManifest const& all, Program const& of) const;
  std::vector<StepManifest::Index> indices(Json const& from, StepManifest const& all) const;
  void outputs(Json const& from, StepManifest const& all, Program& of) const;

  template <class Named>
  std::size_t place(Json const& value, std::string_view name, std::vector<Named> const& in) const {
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i].name == name) return i;
    }
    fields_.fail(value, "\"" + std::string(name) + "\" is not in the manifest");
  }

  JsonFields fields_;
  Json all_;
};

FRUGAL_INLINE StepManifestReader::StepManifestReader(std::string_view text,
                                                     std::filesystem::path const& where)
    : fields_({.what = "a step package has a damaged manifest",
               .where = where.string(),
               .why = {},
               .fix = step_mend}),
      all_(fields_.parse(text, "frugal step package")) {
  if (std::uint64_t const written = fields_.version(all_); written > StepManifest::newest_version) {
    throw NewerFormatError(
        {.what = "the step package has a newer format",
         .where = where.string(),
         .why = "its version is " + std::to_string(written) +
                ", and this library reads versions up to " +
                std::to_string(StepManifest::newest_version),
         .fix = "Update frugal, or export the package with the frugal_step of this version."});
  }
  fields_.only(all_, {"format", "version", "torch", "architecture", "device", "instructions",
                      "precision", "module", "parameters", "buffers", "statistics", "tied",
                      "fields", "weights", "programs", "crc32"});
  // The sum is the last member, and is that of the text before it.
  std::size_t const end = text.rfind(",\n \"crc32\":");
  if (end == std::string_view::npos) fields_.fail("it does not end with its sum");
  auto const* const bytes = reinterpret_cast<unsigned char const*>(text.data());
  if (crc32_z(0, bytes, end) != fields_.number(all_, "crc32")) {
    fields_.fail(fields_.member(all_, "crc32"), "its text was changed after the export");
  }
}

FRUGAL_INLINE std::int64_t StepManifestReader::size(Json const& value, char const* of) const {
  // Far above every tensor, and far below an overflow.
  constexpr std::int64_t most = std::int64_t{1} << 48;
  auto const number = value.as_signed();
  if (!number || *number < 0 || *number > most)
    fields_.fail(value, std::string(of) + " is not a size");
  return *number;
}

FRUGAL_INLINE bool StepManifestReader::truth(Json const& parent, char const* name) const {
  Json const& value = fields_.member(parent, name);
  if (!value.is(Json::Kind::boolean))
    fields_.fail(value, "\"" + std::string(name) + "\" is neither true nor false");
  return value.truth();
}

FRUGAL_INLINE std::vector<std::int64_t> StepManifestReader::numbers(Json const& parent,
                                                                    char const* name) const {
  std::vector<std::int64_t> out;
  for (Json const& each : fields_.array(parent, name)) out.push_back(size(each, name));
  return out;
}

FRUGAL_INLINE StepManifest::File StepManifestReader::file(Json const& from) const {
  StepManifest::File out{.name = fields_.text(from, "file"),
                         .bytes = fields_.number(from, "bytes")};
  std::uint64_t const sum = fields_.number(from, "crc32");
  bool const plain = !out.name.empty() && out.name.front() != '.' && is_utf8(out.name) &&
                     out.name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!plain) fields_.fail(from, "a file has an invalid name");
  if (sum > std::numeric_limits<std::uint32_t>::max())
    fields_.fail(from, "a sum has more than 32 bits");
  out.crc32 = static_cast<std::uint32_t>(sum);
  return out;
}

FRUGAL_INLINE std::vector<StepManifest::Tensor> StepManifestReader::tensors(
    char const* name, std::set<std::string>& names, bool parameters) const {
  std::vector<Tensor> out;
  for (Json const& each : fields_.array(all_, name)) {
    Tensor tensor{.name = fields_.text(each, "name"),
                  .type = fields_.text(each, "type"),
                  .sizes = numbers(each, "shape"),
                  .strides = numbers(each, "stride")};
    if (parameters) {
      fields_.only(each, {"name", "type", "shape", "stride", "trained"});
      tensor.trained = truth(each, "trained");
      if (tensor.trained && !out.empty() && !out.back().trained)
        fields_.fail(each, "a trained parameter is not first");
    } else {
      fields_.only(each, {"name", "type", "shape", "stride"});
    }
    if (tensor.name.empty() || !names.insert(tensor.name).second) {
      fields_.fail(each, "two tensors are called \"" + tensor.name + "\"");
    }
    if (tensor.sizes.size() != tensor.strides.size())
      fields_.fail(each, "it has not one stride per dimension");
    out.push_back(std::move(tensor));
  }
  return out;
}

FRUGAL_INLINE StepManifest::Input StepManifestReader::input(Json const& from,
                                                            StepManifest const& all,
                                                            Program const& of) const {
  fields_.only(from, {"name", "shape"});
  StepManifest::Input out{.field = place(from, fields_.text(from, "name"), all.fields),
                          .shape = {}};
  for (Json const& each : fields_.array(from, "shape")) {
    StepManifest::Extent extent;
    if (each.is(Json::Kind::text)) {
      extent.dimension = static_cast<std::ptrdiff_t>(place(each, each.text(), of.dimensions));
    } else {
      extent.size = size(each, "shape");
    }
    out.shape.push_back(extent);
  }
  return out;
}

FRUGAL_INLINE std::vector<StepManifest::Index> StepManifestReader::indices(
    Json const& from, StepManifest const& all) const {
  std::vector<StepManifest::Index> out;
  for (Json const& each : fields_.array(from, "indices")) {
    fields_.only(each, {"operator", "fields", "size", "negative", "allowed"});
    StepManifest::Index index{.operation = fields_.text(each, "operator"), .fields = {}};
    for (Json const& field : fields_.array(each, "fields"))
      index.fields.push_back(place(field, field.text(), all.fields));
    Json const& size_of = fields_.member(each, "size");
    if (!size_of.is(Json::Kind::null)) index.size = size(size_of, "size");
    index.negative = truth(each, "negative");
    Json const& allowed = fields_.member(each, "allowed");
    if (!allowed.is(Json::Kind::null)) {
      index.allowed = allowed.as_signed();
      if (!index.allowed) fields_.fail(allowed, "\"allowed\" is no number");
    }
    out.push_back(std::move(index));
  }
  return out;
}

FRUGAL_INLINE void StepManifestReader::outputs(Json const& from, StepManifest const& all,
                                               Program& of) const {
  bool const predicts = of.kind == StepManifest::Kind::predict;
  std::vector<Json> const& names = fields_.array(from, "outputs");
  // In this order, each part of which may be empty.
  int part = predicts ? 2 : 0;
  bool checks = false;
  for (Json const& each : names) {
    std::string_view const name = each.text();
    auto const is_of = [&](std::string_view prefix) {
      return name.substr(0, prefix.size()) == prefix;
    };
    int const found = name == "value"      ? 0
                      : name == "weight"   ? 1
                      : name == "output"   ? 2
                      : name == "index"    ? 3
                      : is_of("buffer:")   ? 4
                      : is_of("gradient:") ? 5
                                           : -1;
    if (found < part || (&each == names.data() && !predicts && found != 0)) {
      fields_.fail(each, "the output \"" + std::string(name) +
                             "\" is not one of its kind, or not in its place");
    }
    part = found < 4 ? found + 1 : found;
    checks |= found == 3;
    if (found == 1) of.weight = true;
    if (found == 2) of.output = true;
    if (found == 4) of.buffers.push_back(place(each, name.substr(7), all.buffers));
    if (found == 5) of.gradients.push_back(place(each, name.substr(9), all.parameters));
  }
  bool const steps = of.kind == StepManifest::Kind::step;
  bool const whole = predicts ? of.output : !names.empty();
  if (!whole || checks == of.indices.empty() || of.gradients.empty() == steps ||
      (!steps && !of.buffers.empty())) {
    fields_.fail(from, "its outputs are not those of its kind");
  }
  for (std::vector<std::size_t> const* list : {&of.buffers, &of.gradients}) {
    std::set<std::size_t> const once(list->begin(), list->end());
    if (once.size() != list->size()) fields_.fail(from, "it has an output twice");
  }
  for (std::size_t const at : of.gradients) {
    if (!all.parameters[at].trained)
      fields_.fail(from, "it has a gradient of a parameter that is not trained");
  }
}

FRUGAL_INLINE StepManifest::Program StepManifestReader::program(Json const& from,
                                                                StepManifest const& all) const {
  fields_.only(from, {"kind", "file", "bytes", "crc32", "table", "graph", "fields", "dimensions",
                      "outputs", "indices"});
  Program out;
  std::string const kind = fields_.text(from, "kind");
  if (kind == "step") {
    out.kind = StepManifest::Kind::step;
  } else if (kind == "evaluate") {
    out.kind = StepManifest::Kind::evaluate;
  } else if (kind == "predict") {
    out.kind = StepManifest::Kind::predict;
  } else {
    fields_.fail(from, "there is no kind of programs \"" + kind + "\"");
  }
  out.file = file(from);
  Json const& table = fields_.member(from, "table");
  if (!table.is(Json::Kind::null)) {
    fields_.only(table, {"file", "bytes", "crc32"});
    out.table = file(table);
    if (out.table->name != out.file.name.substr(0, out.file.name.rfind('.')) + ".json") {
      fields_.fail(table, "the table of operators is not beside its code");
    }
  }
  out.graph = fields_.text(from, "graph");
  for (Json const& each : fields_.array(from, "dimensions")) {
    fields_.only(each, {"name", "min", "max"});
    StepManifest::Dimension const dimension{.name = fields_.text(each, "name"),
                                            .least = size(fields_.member(each, "min"), "min"),
                                            .most = size(fields_.member(each, "max"), "max")};
    if (dimension.name.empty() || dimension.least > dimension.most)
      fields_.fail(each, "it is no range of sizes");
    out.dimensions.push_back(dimension);
  }
  std::set<std::size_t> once;
  for (Json const& each : fields_.array(from, "fields")) {
    out.fields.push_back(input(each, all, out));
    if (!once.insert(out.fields.back().field).second) fields_.fail(each, "a field is there twice");
  }
  out.indices = indices(from, all);
  outputs(from, all, out);
  return out;
}

FRUGAL_INLINE StepManifest StepManifestReader::read() const {
  StepManifest out;
  out.torch = fields_.text(all_, "torch");
  out.architecture = fields_.text(all_, "architecture");
  out.device = fields_.text(all_, "device");
  constexpr std::string_view gpu = "cuda:sm_";
  bool const is_gpu = out.device.starts_with(gpu) && out.device.size() > gpu.size() + 1 &&
                      std::ranges::all_of(out.device.substr(gpu.size()),
                                          [](char c) { return c >= '0' && c <= '9'; });
  if (out.device != "cpu" && !is_gpu) {
    fields_.fail(fields_.member(all_, "device"), "there is no device \"" + out.device + "\"");
  }
  for (Json const& each : fields_.array(all_, "instructions"))
    out.instructions.push_back(each.text());
  out.precision = fields_.text(all_, "precision");
  out.module = fields_.text(all_, "module");
  std::set<std::string> names;
  out.parameters = tensors("parameters", names, true);
  out.buffers = tensors("buffers", names, false);
  for (Json const& each : fields_.array(all_, "statistics")) {
    fields_.only(each, {"mean", "variance", "tracked", "momentum"});
    auto const buffer = [&](char const* name) {
      return place(each, fields_.text(each, name), out.buffers);
    };
    StepManifest::Statistics one{
        .mean = buffer("mean"), .variance = buffer("variance"), .tracked = buffer("tracked")};
    Json const& momentum = fields_.member(each, "momentum");
    if (!momentum.is(Json::Kind::null)) {
      one.momentum = momentum.as_double();
      if (!one.momentum) fields_.fail(momentum, "\"momentum\" is no number");
    }
    out.statistics.push_back(one);
  }
  for (Json const& each : fields_.array(all_, "tied")) {
    fields_.only(each, {"name", "of"});
    StepManifest::Tied tied{.name = fields_.text(each, "name"), .of = fields_.text(each, "of")};
    if (!names.contains(tied.of) || !names.insert(tied.name).second) {
      fields_.fail(each, "it ties no tensor that is there to a new name");
    }
    out.tied.push_back(std::move(tied));
  }
  for (Json const& each : fields_.array(all_, "fields")) {
    fields_.only(each, {"name", "type"});
    out.fields.push_back({.name = fields_.text(each, "name"), .type = fields_.text(each, "type")});
  }
  Json const& weights = fields_.member(all_, "weights");
  fields_.only(weights, {"file", "bytes", "crc32"});
  out.weights = file(weights);
  for (Json const& each : fields_.array(all_, "programs"))
    out.programs.push_back(program(each, out));
  bool const trains = std::ranges::any_of(
      out.programs, [](Program const& each) { return each.kind == StepManifest::Kind::step; });
  if (!trains) fields_.fail("it has no training step");
  return out;
}

/// FormatError if a file of the package is not as the manifest says.
FRUGAL_INLINE void require_step_file(std::filesystem::path const& folder,
                                     StepManifest::File const& file) {
  std::filesystem::path const path = folder / file.name;
  auto const refuse = [&](std::string why) {
    throw FormatError({.what = "a file of a step package is not that of the export",
                       .where = path.string(),
                       .why = std::move(why),
                       .fix = "Copy the whole folder again, or export the package again."});
  };
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) refuse("it is missing");
  MappedFile const mapped(path);
  auto const bytes = mapped.bytes();
  if (bytes.size() != file.bytes) {
    refuse("it has " + std::to_string(bytes.size()) + " bytes, and the manifest says " +
           std::to_string(file.bytes));
  }
  if (crc32_z(0, reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size()) !=
      file.crc32) {
    refuse("its bytes were changed");
  }
}

/// LibTorch reads a table that lies beside the code, whether the exporter has written it or not.
FRUGAL_INLINE void require_no_table(std::filesystem::path path) {
  path.replace_extension(".json");
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return;
  throw FormatError({.what = "a step package has a file that is not in its manifest",
                     .where = path.string(),
                     .why = "its code would read it as a table of operators",
                     .fix = "Remove it, or export the package again."});
}

}  // namespace frugal::detail

namespace frugal {

FRUGAL_INLINE StepManifest StepManifest::parse(std::string_view text,
                                               std::filesystem::path const& where) {
  return detail::StepManifestReader(text, where).read();
}

FRUGAL_INLINE StepManifest StepManifest::open(std::filesystem::path const& folder) {
  std::filesystem::path const path = folder / file_name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw FormatError({.what = "there is no step package",
                       .where = folder.string(),
                       .why = std::string("it has no file ") + file_name,
                       .fix = "Export one with frugal_step.export_step(), and name its folder."});
  }
  StepManifest out = [&] {
    MappedFile const mapped(path);
    auto const bytes = mapped.bytes();
    return parse({reinterpret_cast<char const*>(bytes.data()), bytes.size()}, path);
  }();
  detail::require_step_file(folder, out.weights);
  for (Program const& program : out.programs) {
    detail::require_step_file(folder, program.file);
    if (program.table) {
      detail::require_step_file(folder, *program.table);
    } else {
      detail::require_no_table(folder / program.file.name);
    }
  }
  return out;
}

FRUGAL_INLINE std::uint64_t StepManifest::identity() const {
  std::string text = precision;
  auto const add = [&](std::int64_t number) { text += ' ' + std::to_string(number); };
  for (Program const& each : programs) {
    text += '\n' + each.graph;
    for (Dimension const& dimension : each.dimensions) add(dimension.least), add(dimension.most);
    for (Input const& input : each.fields) {
      text += '\n' + fields[input.field].name + ' ' + fields[input.field].type;
      for (Extent const& extent : input.shape) add(extent.size), add(extent.dimension);
    }
  }
  for (std::vector<Tensor> const* tensors : {&parameters, &buffers}) {
    for (Tensor const& each : *tensors) {
      text += '\n' + each.name + ' ' + each.type + (each.trained ? '+' : '-');
      for (std::int64_t const size : each.sizes) add(size);
      for (std::int64_t const stride : each.strides) add(stride);
    }
  }
  return Hash::of(std::as_bytes(std::span(text)));
}

}  // namespace frugal

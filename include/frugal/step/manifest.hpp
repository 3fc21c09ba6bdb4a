// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace frugal {

/// The manifest of a step package: everything that must be known before its code is loaded.
/// Types have the names that Python gives them, such as "float32".
struct StepManifest {
  static constexpr std::uint64_t newest_version = 1;
  static constexpr char const* file_name = "manifest.json";

  /// A file of the package.
  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::uint32_t crc32 = 0;
  };
  /// A parameter or a buffer.
  struct Tensor {
    std::string name;  ///< with dots, as Python has it
    std::string type;
    std::vector<std::int64_t> sizes, strides;
    bool trained = false;
  };
  struct Tied {
    std::string name;  ///< another name
    std::string of;    ///< of this tensor
  };
  /// The running statistics of a BatchNorm layer, by the places of its buffers.
  struct Statistics {
    std::size_t mean = 0, variance = 0, tracked = 0;
    std::optional<double> momentum{};  ///< nothing: the mean of all calls
  };
  struct Field {
    std::string name;
    std::string type;
  };
  /// The size of a field's dimension: a number, or one of the program's dimensions.
  struct Extent {
    std::int64_t size = 0;
    std::ptrdiff_t dimension = -1;  ///< place in `dimensions`; -1: `size`
  };
  struct Dimension {
    std::string name;
    std::int64_t least = 1, most = 1;
  };
  struct Input {
    std::size_t field = 0;  ///< place in the manifest's `fields`
    std::vector<Extent> shape;
  };
  /// Indices that compiled code has checked.
  struct Index {
    std::string operation;                  ///< that takes them, as in "embedding"
    std::vector<std::size_t> fields;        ///< that they are computed from, by place
    std::optional<std::int64_t> size{};     ///< they are below it; nothing: it varies
    bool negative = false;                  ///< they may count from the end: from -size on
    std::optional<std::int64_t> allowed{};  ///< one number besides, as ignore_index
  };
  enum class Kind { step, evaluate, predict };
  /// Compiled code. Its inputs are the parameters, the buffers, the fields and, of a step, the seed.
  struct Program {
    Kind kind = Kind::step;
    File file;
    std::optional<File> table{};  ///< of operators that LibTorch looks up for the code
    std::string graph;            ///< a hash of what it computes, whatever the machine
    std::vector<Input> fields;
    std::vector<Dimension> dimensions;
    bool weight = false, output = false;  ///< besides the loss's value
    std::vector<Index> indices;           ///< an output says which is out of range
    std::vector<std::size_t> buffers;     ///< those that it changes, by place
    std::vector<std::size_t> gradients;   ///< of these parameters, by place
  };

  std::string torch;                      ///< LibTorch's version, as in "2.11.0"
  std::string architecture;               ///< as in "x86_64"
  std::string device;                     ///< "cpu", or "cuda:sm_90"
  std::vector<std::string> instructions;  ///< of the CPU, as /proc/cpuinfo calls them
  std::string precision;                  ///< of the recipe: "FP32", "BF16" or "FP16"
  std::string module;                     ///< Python's class
  std::vector<Tensor> parameters;         ///< the trained ones first
  std::vector<Tensor> buffers;
  std::vector<Statistics> statistics;  ///< of BatchNorm layers that the step changes
  std::vector<Tied> tied;
  std::vector<Field> fields;
  File weights;
  std::vector<Program> programs;

  /// Parses a manifest's text. Errors: FormatError with the byte for everything that does not fit;
  /// NewerFormatError for one of a newer exporter.
  static StepManifest parse(std::string_view text, std::filesystem::path const& where);

  /// Reads it from a package, and compares the other files with it. Errors: also StoreError for a file that
  /// cannot be read; FormatError for one that is missing or was changed.
  static StepManifest open(std::filesystem::path const& folder);

  /// A hash of what the package computes: of its graphs, tensors, shapes and precision, and not of the machine
  /// code.
  std::uint64_t identity() const;
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/step/manifest.ipp>
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <torch/csrc/inductor/aoti_runner/model_container_runner.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <frugal/core/libtorch/out_of_memory.hpp>
#include <frugal/core/source/shape_text.hpp>
#include <frugal/error.hpp>
#include <frugal/step/manifest.hpp>

namespace frugal::detail {

/// LibTorch's type of a name such as "float32"; FormatError with the tensor's name for one that it lacks.
inline at::ScalarType step_type(std::string const& name, std::string const& of) {
  for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i) {
    auto const type = static_cast<at::ScalarType>(i);
    if (type != at::ScalarType::Undefined && c10::getDtypeNames(type).first == name) return type;
  }
  throw FormatError({.what = "a step package has a tensor of an unknown type",
                     .where = of,
                     .why = "LibTorch has no type '" + name + "'",
                     .fix = "Export the package again, with the torch of the program's version."});
}

/// A tensor as compiled code expects it. The code itself checks nothing: another shape would be read beyond its
/// end.
struct StepLayout {
  std::string name;
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes, strides;

  bool fits(at::Tensor const& tensor, at::Device device) const {
    return tensor.scalar_type() == type && tensor.device() == device && tensor.sizes() == sizes &&
           tensor.strides() == strides && !tensor.is_conj() && !tensor.is_neg() &&
           tensor.layout() == at::kStrided;
  }
};

/// One compiled function of a step package.
class StepProgram {
 public:
  /// Loads the code, which runs its constructors: it is trusted like the program itself.
  StepProgram(StepManifest const& manifest, StepManifest::Program const& entry,
              std::filesystem::path const& folder, at::Device device)
      : manifest_(manifest),
        entry_(entry),
        device_(device),
        first_of_state_(first_of_state(entry)),
        count_(first_of_state_ + entry.buffers.size() + entry.gradients.size()) {
    for (StepManifest::Field const& field : manifest.fields)
      types_.push_back(step_type(field.type, field.name));
    firsts_.resize(entry.dimensions.size());
    for (std::size_t i = entry.fields.size(); i-- > 0;) {
      auto const& shape = entry.fields[i].shape;
      for (std::size_t d = shape.size(); d-- > 0;) {
        if (shape[d].dimension >= 0)
          firsts_[static_cast<std::size_t>(shape[d].dimension)] = {.input = i, .axis = d};
      }
    }
    auto const& makers = torch::inductor::getAOTIModelRunnerRegistry();
    auto const found = makers.find(device.is_cpu() ? "cpu" : "cuda");
    if (found == makers.end()) {
      throw DeviceError({.what = "this LibTorch cannot run a step package on " + device.str(),
                         .where = folder.string(),
                         .why = "it was built without AOTInductor for that device",
                         .fix = "Link the LibTorch of PyTorch's own packages."});
    }
    std::filesystem::path const path = std::filesystem::absolute(folder / entry.file.name);
    require_first(path, entry.file.crc32);
    try {
      runner_ = found->second(path.string(), 1, device.str(), "", /*run_single_threaded=*/false);
    } catch (std::exception const& error) {
      throw FormatError(
          {.what = "the code of a step package cannot be loaded",
           .where = path.string(),
           .why = first_line(error.what()),
           .fix = "Export it with the torch of the program's version, on a machine of this kind."});
    }
  }

  StepManifest::Program const& entry() const { return entry_; }

  /// The first input for which a batch has a tensor of a type, device or shape that it was not compiled for; the
  /// number of inputs if there is none. `field(i)`: what the batch has for input i.
  template <class FieldOf>
  std::size_t misfit(FieldOf&& field) const {
    for (std::size_t i = 0; i < entry_.fields.size(); ++i) {
      at::Tensor const& tensor = field(i);
      auto const& shape = entry_.fields[i].shape;
      if (tensor.scalar_type() != types_[entry_.fields[i].field] || tensor.device() != device_ ||
          static_cast<std::size_t>(tensor.dim()) != shape.size()) {
        return i;
      }
      for (std::size_t d = 0; d < shape.size(); ++d) {
        std::int64_t const size = tensor.sizes()[d];
        if (shape[d].dimension < 0) {
          if (size != shape[d].size) return i;
          continue;
        }
        auto const at = static_cast<std::size_t>(shape[d].dimension);
        auto const& dimension = entry_.dimensions[at];
        First const first = firsts_[at];
        at::Tensor const& known = first.input == i ? tensor : field(first.input);
        if (size < dimension.least || size > dimension.most || size != known.sizes()[first.axis])
          return i;
      }
    }
    return entry_.fields.size();
  }

  /// Why the tensor that a batch has for input i is a misfit.
  std::string misfit_text(std::size_t i, at::Tensor const& tensor) const {
    StepManifest::Input const& input = entry_.fields[i];
    at::ScalarType const type = types_[input.field];
    std::string const name = "'" + manifest_.fields[input.field].name + "' ";
    if (tensor.scalar_type() != type) {
      return name + "is " + c10::toString(tensor.scalar_type()) + ", and the package reads " +
             c10::toString(type);
    }
    if (tensor.device() != device_) {
      return name + "is on " + tensor.device().str() + ", and the package runs on " + device_.str();
    }
    return name + "has the shape " + shape_text(tensor) + ", and the package reads " +
           text_of(input.shape);
  }

  /// Runs the code. The caller has checked every input. Throws c10::OutOfMemoryError if memory does not hold a run,
  /// LabelError for a label and DataError for another index that is out of range; nothing of the module has changed
  /// then.
  std::vector<at::Tensor> run(std::vector<at::Tensor> const& inputs) const {
    // The operators that the code calls are those that were compiled: not those of autograd or autocast.
    at::NoGradGuard const no_gradients;
    c10::impl::ExcludeDispatchKeyGuard const no_autocast(c10::autocast_dispatch_keyset);
    // On a GPU: on the current stream.
    std::vector<at::Tensor> outputs = locked_run(inputs);
    if (outputs.size() != count_) refuse_count(outputs.size());
    if (!entry_.indices.empty()) require_indices(outputs, inputs);
    return outputs;
  }

  /// The place of the first output behind those of the loss and of the indices: the buffers, then the gradients.
  std::size_t first_of_state() const { return first_of_state_; }

 private:
  std::vector<at::Tensor> locked_run(std::vector<at::Tensor> const& inputs) const {
    // One run at a time: LibTorch's container of one model may wait for ever for two.
    std::scoped_lock const lock(running_);
    try {
      return runner_->run(inputs);
    } catch (std::exception const&) {
      // Its error has no cause. A second run, which is watched, either finds the cause or ends well.
    }
    AllocationWatch const watch;
    try {
      return runner_->run(inputs);
    } catch (std::exception const& error) {
      TORCH_CHECK_WITH(OutOfMemoryError, !watch.failed(),
                       "frugal: the code of a step package ran out of memory (", entry_.file.name,
                       ")");
      refuse_run(error.what());
    }
  }

  void require_indices(std::vector<at::Tensor> const& outputs,
                       std::vector<at::Tensor> const& inputs) const {
    std::int64_t const failed = *outputs[first_of_state_ - 1].const_data_ptr<std::int64_t>();
    if (failed != 0) [[unlikely]]
      refuse_index(static_cast<std::size_t>(failed) - 1, inputs);
  }

  /// The dynamic linker knows a library by its path: of a file that was replaced it has the old code.
  static void require_first(std::filesystem::path const& path, std::uint32_t crc32) {
    static std::mutex mutex;
    static std::map<std::string, std::uint32_t> loaded;
    std::scoped_lock const lock(mutex);
    auto const [known, is_first] = loaded.try_emplace(path.string(), crc32);
    if (is_first || known->second == crc32) return;
    throw FormatError(
        {.what = "a step package was replaced after this process has opened it",
         .where = path.string(),
         .why = "the process has the code of the older one, and cannot load another from this path",
         .fix = "Start the program again, or export into another folder."});
  }

  [[noreturn]] void refuse_run(std::string const& why) const {
    throw ModuleError(
        {.what = "a step package's code failed",
         .where = entry_.file.name,
         .why = first_line(why) + "; the code's own message is on the standard error",
         .fix = "Export the package with compare=True, which runs the code in Python first."});
  }
  [[noreturn]] void refuse_index(std::size_t number, std::vector<at::Tensor> const& inputs) const {
    StepManifest::Index const& index = entry_.indices.at(number);
    std::string names, found;
    std::size_t const first = manifest_.parameters.size() + manifest_.buffers.size();
    for (std::size_t i = 0; i < entry_.fields.size(); ++i) {
      if (std::ranges::find(index.fields, entry_.fields[i].field) == index.fields.end()) continue;
      std::string const name = "'" + manifest_.fields[entry_.fields[i].field].name + "'";
      names += (names.empty() ? "the field " : ", ") + name;
      at::Tensor const& field = inputs[first + i];
      if (field.numel() != 0 && at::isIntegralType(field.scalar_type(), false)) {
        found += "; " + name + " has numbers from " +
                 std::to_string(field.min().item<std::int64_t>()) + " to " +
                 std::to_string(field.max().item<std::int64_t>());
      }
    }
    std::string const size = index.size ? std::to_string(*index.size) : "N";
    std::string const limit =
        "numbers from " + (index.negative ? "-" + size : "0") + " to " +
        (index.size ? std::to_string(*index.size - 1) : "N - 1, of a size N that varies,");
    Fault fault{.what = "a batch has a label or another index that is out of range",
                .where = (names.empty() ? "" : names + ", ") + entry_.file.name,
                .why = index.operation + " takes " + limit +
                       (index.allowed ? " and " + std::to_string(*index.allowed) : "") + found,
                .fix = "Correct the data set, or export a module with more classes or rows."};
    if (index.operation.starts_with("nll_loss")) throw LabelError(std::move(fault));
    throw DataError(std::move(fault));
  }
  [[noreturn]] void refuse_count(std::size_t found) const {
    throw FormatError({.what = "the code of a step package is not that of its manifest",
                       .where = entry_.file.name,
                       .why = "it returned " + std::to_string(found) +
                              " tensors, and the manifest lists " + std::to_string(count_),
                       .fix = "Export the package again."});
  }

  /// How many come before the buffers: the loss's value, its weight, its output, and what the code says of indices.
  static std::size_t first_of_state(StepManifest::Program const& entry) {
    std::size_t const value = entry.kind == StepManifest::Kind::predict ? 0 : 1;
    return value + std::size_t{entry.weight} + std::size_t{entry.output} +
           std::size_t{!entry.indices.empty()};
  }

  static std::string first_line(std::string const& text) { return text.substr(0, text.find('\n')); }

  std::string text_of(std::vector<StepManifest::Extent> const& shape) const {
    std::string out = "[";
    for (StepManifest::Extent const& extent : shape) {
      if (out.size() > 1) out += ", ";
      if (extent.dimension < 0) {
        out += std::to_string(extent.size);
      } else {
        auto const& dimension = entry_.dimensions[static_cast<std::size_t>(extent.dimension)];
        out += dimension.name;
        if (dimension.least > 1) out += " >= " + std::to_string(dimension.least);
      }
    }
    return out + "]";
  }

  StepManifest const& manifest_;
  StepManifest::Program const& entry_;
  at::Device device_;
  std::size_t first_of_state_;
  std::size_t count_;  // of its outputs
  std::vector<at::ScalarType> types_;
  struct First {
    std::size_t input = 0, axis = 0;
  };
  std::vector<First> firsts_;  // where each dimension is first
  std::unique_ptr<torch::inductor::AOTIModelContainerRunner> runner_;
  mutable std::mutex running_;
};

}  // namespace frugal::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <frugal/base/file.hpp>
#include <frugal/base/json.hpp>
#include <frugal/base/json_writer.hpp>
#include <frugal/checkpoint/dtype.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/core/libtorch/finite.hpp>
#include <frugal/core/libtorch/layer_tensors.hpp>
#include <frugal/core/libtorch/parameters.hpp>
#include <frugal/core/run/settings.hpp>
#include <frugal/error.hpp>
#include <frugal/model/lora.hpp>
#include <frugal/model/lora/adapter.hpp>
#include <frugal/model/lora/merge.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

namespace frugal {

namespace detail {

// Names and keys of PEFT's format.
inline constexpr std::string_view peft_prefix = "base_model.model.";
inline constexpr char const* peft_weights = "adapter_model.safetensors";
inline constexpr char const* peft_config = "adapter_config.json";

/// An adapter's tensors by their names in PEFT's file, after the layer's name.
std::vector<std::pair<std::string, at::Tensor>> peft_tensors(LoraAdapter& adapter);

[[noreturn]] void refuse_peft(std::filesystem::path const& file, std::string why);

/// Keys of a config that say nothing about what the adapter computes, whatever their value, or that
/// read_peft_config() reads: the tensors of the file name the layers. Of PEFT 0.1 to 0.21.
inline constexpr std::array<std::string_view, 21> peft_harmless{"peft_type",
                                                                "task_type",
                                                                "peft_version",
                                                                "base_model_name_or_path",
                                                                "revision",
                                                                "auto_mapping",
                                                                "inference_mode",
                                                                "target_modules",
                                                                "exclude_modules",
                                                                "modules_to_save",
                                                                "merge_weights",
                                                                "layers_to_transform",
                                                                "layers_pattern",
                                                                "megatron_core",
                                                                "runtime_config",
                                                                "qalora_group_size",
                                                                "r",
                                                                "lora_alpha",
                                                                "lora_dropout",
                                                                "bias",
                                                                "init_lora_weights"};
/// Keys of options that are off if they are null, false or empty.
inline constexpr std::array<std::string_view, 22> peft_options{"fan_in_fan_out",
                                                               "lora_bias",
                                                               "use_qalora",
                                                               "use_bdlora",
                                                               "rank_pattern",
                                                               "alpha_pattern",
                                                               "layer_replication",
                                                               "target_parameters",
                                                               "megatron_config",
                                                               "loftq_config",
                                                               "eva_config",
                                                               "corda_config",
                                                               "lora_ga_config",
                                                               "arrow_config",
                                                               "velora_config",
                                                               "kasa_config",
                                                               "monteclora_config",
                                                               "enable_lora",
                                                               "ensure_weight_tying",
                                                               "trainable_token_indices",
                                                               "exclude_modules_pattern",
                                                               "alora_invocation_tokens"};

/// Refuses every key of a config that may change what the adapter computes, unknown ones included.
void require_known_options(Json const& config, std::filesystem::path const& file);

/// Refuses ways to begin that leave another base than the module's. PiSSA's is found again, if it is
/// that of a whole singular value decomposition.
void require_known_beginning(Json const* begin, std::filesystem::path const& file);

/// The settings that a config names. FormatError for options that frugal does not compute.
LoraSettings read_peft_config(std::filesystem::path const& file);

/// What a module with adapters trains besides them, by name: parameters, the buffers of the modules
/// that have them, and the statistics of normalization layers without parameters, unless fixed.
std::map<std::string, at::Tensor> trained_beside_adapters(torch::nn::Module& root,
                                                          std::string_view adapter);

/// Gathers what is written to it.
struct TextSink {
  std::string text{};
  void write(std::span<std::byte const> bytes) {
    text.append(reinterpret_cast<char const*>(bytes.data()), bytes.size());
  }
};

}  // namespace detail

/// Writes an adapter of a module in the format of PEFT: adapter_config.json and
/// adapter_model.safetensors, which PeftModel.from_pretrained reads. Parameters that are trained
/// besides the adapters (AlsoTrain) are in it, as modules_to_save, with the buffers of their modules:
/// the statistics of a BatchNorm.
///
/// Errors  SettingsError without such an adapter, or with several options; StateError for a parameter that is trained
///         besides the adapters and includes a merged one; StoreError if the files cannot be written.
template <class Module>
void save_adapter(Module& module, std::filesystem::path const& folder,
                  std::string_view name = "default") {
  torch::nn::Module& root = base_module(module);
  auto const found = detail::require_adapters(root, name, "save_adapter");
  LoraSettings const settings = found.front().adapter->settings();
  std::map<std::string, at::Tensor> tensors;
  std::set<std::string> layers, also;
  for (detail::FoundAdapter const& each : found) {
    if (!(each.adapter->settings() == settings)) {
      throw SettingsError({.what = "the adapters '" + settings.name + "' differ in their options",
                           .where = "save_adapter",
                           .why = "PEFT's file has one rank and one alpha, and those of '" +
                                  found.front().layer.name + "' and '" + each.layer.name +
                                  "' are not the same",
                           .fix = "Give them different names (AdapterName), and save each."});
    }
    layers.insert(each.layer.name);
    for (auto const& [part, tensor] : detail::peft_tensors(*each.adapter)) {
      tensors.emplace(std::string(detail::peft_prefix) + each.layer.name + part,
                      tensor.detach().cpu().contiguous());
    }
  }
  auto const all = detail::find_adapters(root);
  for (auto const& [key, tensor] : detail::trained_beside_adapters(root, settings.name)) {
    std::size_t const dot = key.rfind('.');
    if (detail::FoundAdapter const* const sum = detail::merged_into(tensor, all)) {
      throw StateError(
          {.what =
               "'" + key + "' includes the merged adapter '" + sum->adapter->settings().name + "'",
           .where = "save_adapter",
           .why = "the file would have the sum as a trained parameter, and who loads it would add "
                  "the adapter a second time",
           .fix = "Call unmerge(module) first."});
    }
    if (dot != std::string::npos) also.insert(key.substr(0, dot));
    tensors.emplace(std::string(detail::peft_prefix) + key, tensor.detach().cpu().contiguous());
  }
  std::vector<TensorView> views;
  for (auto const& [key, tensor] : tensors) views.push_back(detail::stored_view(key, tensor));
  detail::TextSink bytes;
  SafetensorsWriter(std::move(views), {{"format", "pt"}}, detail::peft_weights).write(bytes);

  detail::JsonWriter json;
  json.object(detail::JsonLayout::lines);
  json.add("peft_type", "LORA");
  json.add("r", settings.rank);
  // Whole alphas as integers, as PEFT writes them.
  bool const whole =
      settings.alpha == static_cast<double>(static_cast<std::int64_t>(settings.alpha));
  if (whole) json.add("lora_alpha", static_cast<std::int64_t>(settings.alpha));
  if (!whole) json.add("lora_alpha", settings.alpha);
  json.add("lora_dropout", settings.dropout);
  json.add("use_rslora", settings.rank_stabilized);
  json.add("use_dora", settings.dora);
  json.add("bias", "none");
  json.add("fan_in_fan_out", false);
  json.add("inference_mode", true);
  json.key("init_lora_weights");
  settings.pissa ? json.value("pissa") : json.value(true);
  json.key("target_modules").array();
  for (std::string const& each : layers) json.value(each);
  json.end();
  json.key("modules_to_save");
  if (also.empty()) {
    json.raw("null");
  } else {
    json.array();
    for (std::string const& each : also) json.value(each);
    json.end();
  }
  json.key("task_type").raw("null");
  json.key("base_model_name_or_path").raw("null");
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  detail::write_whole_file(folder / detail::peft_weights, bytes.text, detail::Durable::yes);
  detail::write_whole_file(folder / detail::peft_config, json.str("\n"), detail::Durable::yes);
}

/// Adds the adapter of a folder in the format of PEFT to a module, under a name, and fixes the base.
/// The module must have the adapted layers under the names of the file.
///
/// Errors  FormatError for a file that is damaged, or for an option that frugal does not compute;
///         StateError for a layer that the module lacks, another shape or kind of number, and numbers
///         beyond the module's type; SettingsError for a layer that has an adapter of that name with other
///         options, or that the file lacks, or cannot be adapted. The module is then as it was.
template <class Module>
void load_adapter(Module& module, std::filesystem::path const& folder,
                  std::string_view name = "default") {
  torch::nn::Module& root = base_module(module);
  LoraSettings settings = detail::read_peft_config(folder / detail::peft_config);
  settings.name = name;
  Safetensors const file = Safetensors::open(folder / detail::peft_weights);
  auto const refuse = [&](std::string why) {
    throw StateError({.what = "this adapter belongs to another module",
                      .where = file.name(),
                      .why = std::move(why),
                      .fix = "Load it into the module that it was trained on."});
  };
  // Everything is looked at before anything changes, but for layers whose member was assigned.
  detail::register_members(root);
  auto const require_fit = [&](std::string const& key, at::Tensor const& there,
                               at::Tensor const& here) {
    if (there.sizes() != here.sizes() ||
        !detail::convertible(there.scalar_type(), here.scalar_type())) {
      refuse("'" + key + "' is " + detail::type_and_shape(there) + " there and " +
             detail::type_and_shape(here) + " here");
    }
    if (auto const reach = detail::beyond_range(there, here.scalar_type())) {
      refuse("'" + key + "' has " + std::to_string(*reach) + " there, and " +
             detail::type_and_shape(here) + " ends at " +
             std::to_string(detail::largest_number(here.scalar_type())));
    }
  };
  std::map<std::string, std::map<std::string, at::Tensor>> parts;  // by layer
  std::vector<std::pair<at::Tensor, at::Tensor>> others;
  std::vector<std::string_view> trained;
  auto const parameters = root.named_parameters();
  auto const buffers = root.named_buffers();
  for (std::size_t i = 0; i < file.size(); ++i) {
    std::string key(file[i].name);
    if (!key.starts_with(detail::peft_prefix)) {
      detail::refuse_peft(file.name(), "the tensor '" + key + "' has no name of PEFT's");
    }
    at::Tensor const tensor = detail::tensor_in_file(file[i]);
    if (!tensor.defined()) detail::refuse_peft(file.name(), "'" + key + "' is of an unknown type");
    key.erase(0, detail::peft_prefix.size());
    std::size_t const part = key.rfind(".lora_");
    if (part != std::string::npos) {
      parts[key.substr(0, part)].emplace(key.substr(part), tensor);
      continue;
    }
    auto const* own = parameters.find(key);
    if (own == nullptr) own = buffers.find(key);
    if (own == nullptr || !own->defined())
      refuse("it has '" + key + "', and the module has no such parameter or buffer");
    require_fit(key, tensor, *own);
    for (auto const& [known, values] : others) {
      if (known.is_same(*own) && !at::equal(values.to(at::kDouble), tensor.to(at::kDouble)))
        refuse("'" + key + "' is a tied tensor here, and has several values there");
    }
    others.emplace_back(*own, tensor);
    trained.push_back(file[i].name.substr(detail::peft_prefix.size()));
  }
  std::vector<std::pair<detail::AdaptableLayer, std::map<std::string, at::Tensor>>> adapted;
  auto const all = detail::adaptable_layers(root);
  auto const of_name = detail::find_adapters(root, name);  // before it is loaded
  for (auto& [layer_name, tensors] : parts) {
    auto const layer = std::ranges::find(all, layer_name, &detail::AdaptableLayer::name);
    if (layer == all.end())
      refuse("it adapts '" + layer_name + "', and the module has no such layer");
    // Before matrices of that rank are made.
    for (auto const& [part, tensor] : tensors) {
      bool const is_a = part.starts_with(".lora_A") || part.starts_with(".lora_embedding_A");
      if (is_a && (tensor.dim() == 0 || tensor.size(0) != settings.rank)) {
        refuse("'" + layer_name + part + "' is " + detail::type_and_shape(tensor) +
               ", and the rank is " + std::to_string(settings.rank));
      }
    }
    // An adapter that is there may have another type than a new one.
    std::shared_ptr<LoraAdapter> like;
    for (detail::FoundAdapter const& each : of_name) {
      if (each.layer.module == layer->module && each.adapter->settings() == settings)
        like = each.adapter;
    }
    if (!like) {
      like = std::make_shared<LoraAdapter>(settings, layer->op, layer->weight, layer->name,
                                           /*seed=*/0);
    }
    auto const expected = detail::peft_tensors(*like);
    for (auto const& [part, tensor] : expected) {
      auto const found = tensors.find(part);
      if (found == tensors.end()) refuse("it lacks '" + layer_name + part + "'");
      require_fit(layer_name + part, found->second, tensor);
    }
    if (tensors.size() != expected.size())
      refuse("it has more of '" + layer_name + "' than LoRA has");
    adapted.emplace_back(*layer, std::move(tensors));
  }
  if (adapted.empty()) refuse("it has no adapter");
  for (detail::FoundAdapter const& each : of_name) {
    if (parts.contains(each.layer.name)) continue;
    detail::refuse_adapter("'" + each.layer.name + "' has an adapter '" + std::string(name) +
                               "', of which the file has nothing",
                           "load_adapter",
                           "it would go on adding to the module's outputs beside what is loaded",
                           "Load under another name, or call remove_adapters(module) first.");
  }
  auto const before = detail::find_adapters(root);
  for (auto const& [own, tensor] : others) {
    if (detail::FoundAdapter const* const sum = detail::merged_into(own, before)) {
      refuse("'" + sum->layer.name + "' includes the merged adapter '" +
             sum->adapter->settings().name + "', which would be lost: call unmerge(module) first");
    }
  }
  detail::require_own_heads(root, trained, name);
  for (auto const& [layer, tensors] : adapted) detail::require_adaptable(layer, all, settings);
  at::NoGradGuard const no_gradients;
  for (auto const& [layer, tensors] : adapted) detail::adapt_layer(layer, settings);
  for (detail::FoundAdapter const& each : detail::find_adapters(root, name)) {
    for (auto const& [layer, tensors] : adapted) {
      if (layer.name != each.layer.name) continue;
      for (auto& [part, tensor] : detail::peft_tensors(*each.adapter)) {
        tensor.copy_(tensors.at(part));
      }
    }
  }
  for (auto& [own, tensor] : others) own.copy_(tensor);
  detail::fix_base(root, trained, name);
}

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/model/lora/peft.ipp>
#endif

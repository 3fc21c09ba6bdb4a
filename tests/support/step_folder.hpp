// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/files.hpp"

namespace frugal_test::support {

/// A folder as the exporter of step packages writes it, for a linear layer [1, 3] and a buffer that counts samples.
/// Its files have any bytes, unless they are written before finish().
class StepFolder {
 public:
  using Json = nlohmann::ordered_json;

  /// `torch`: the version of LibTorch that it is for. `step`: the file of the step.
  explicit StepFolder(std::string const& torch = "2.11.0", std::string const& step = "step-0.so")
      : torch_(torch), step_(step) {
    for (std::string const& name : {step, std::string("evaluate-0.so"), std::string("predict-0.so"),
                                    std::string("model.safetensors")}) {
      std::ofstream(folder_ / name) << std::string(300, 'x') << name;
    }
  }

  /// Writes the manifest, after `change` has changed it.
  template <class Change>
  void finish(Change&& change) {
    manifest = described();
    change(manifest);
    write(manifest);
  }

  std::filesystem::path path() const { return folder_.path(); }
  std::filesystem::path operator/(std::string const& name) const { return folder_ / name; }

  /// Writes a manifest with its sum.
  void write(Json const& all) const {
    std::string body = all.dump(1);
    body.resize(body.size() - 2);
    std::ofstream(folder_ / "manifest.json")
        << body << ",\n \"crc32\": " << crc32_of(body) << "\n}\n";
  }
  Json of_file(std::string const& name) const {
    std::string const bytes = text_of(folder_ / name);
    return {{"file", name}, {"bytes", bytes.size()}, {"crc32", crc32_of(bytes)}};
  }

  Json manifest;

 private:
  static std::uint64_t crc32_of(std::string const& bytes) {
    return ::crc32_z(0, reinterpret_cast<unsigned char const*>(bytes.data()), bytes.size());
  }

  Json described() const {
    auto const tensor = [](char const* name, char const* type, Json const& shape,
                           Json const& stride) {
      return Json{{"name", name}, {"type", type}, {"shape", shape}, {"stride", stride}};
    };
    auto const trained = [](Json all) {
      all["trained"] = true;
      return all;
    };
    auto const program = [&](char const* kind, std::string const& file, Json const& outputs) {
      Json made{{"kind", kind}};
      made.update(of_file(file));
      made["table"] = nullptr;
      made["graph"] = std::string("graph of ") + kind;
      made["fields"] = Json::array({{{"name", "data"}, {"shape", {"batch", 3}}}});
      if (std::string(kind) != "predict")
        made["fields"].push_back({{"name", "target"}, {"shape", {"batch", 1}}});
      made["dimensions"] = Json::array({{{"name", "batch"}, {"min", 1}, {"max", 1000}}});
      made["outputs"] = outputs;
      made["indices"] = Json::array();
      return made;
    };
    Json const one = Json::array({1}), none = Json::array();
    return {{"format", "frugal step package"},
            {"version", 1},
            {"torch", torch_},
            {"architecture", "x86_64"},
            {"device", "cpu"},
            {"instructions", Json::array({"sse2"})},
            {"precision", "FP32"},
            {"module", "tests.CountedLinear"},
            {"parameters",
             {trained(tensor("weight", "float32", {1, 3}, {3, 1})),
              trained(tensor("bias", "float32", one, one))}},
            {"buffers", Json::array({tensor("seen", "int64", none, none)})},
            {"statistics", none},
            {"tied", none},
            {"fields",
             {{{"name", "data"}, {"type", "float32"}}, {{"name", "target"}, {"type", "float32"}}}},
            {"weights", of_file("model.safetensors")},
            {"programs",
             {program("step", step_,
                      {"value", "weight", "buffer:seen", "gradient:weight", "gradient:bias"}),
              program("evaluate", "evaluate-0.so", {"value", "weight", "output"}),
              program("predict", "predict-0.so", Json::array({"output"}))}}};
  }

  TemporaryFolder folder_;
  std::string torch_, step_;
};

}  // namespace frugal_test::support

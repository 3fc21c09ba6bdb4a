// SPDX-License-Identifier: Apache-2.0
// torch-free
#include <doctest/doctest.h>

#include <frugal/checkpoint/manifest.hpp>
#include <frugal/step/manifest.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/files.hpp"
#include "support/step_folder.hpp"

namespace frugal_test::step_manifest {

namespace fr = frugal;
using support::StepFolder;
using Json = StepFolder::Json;

/// A folder whose manifest was changed.
struct Folder : StepFolder {
  template <class Change>
  explicit Folder(Change&& change) {
    finish(change);
  }
  Folder() : Folder([](Json&) {}) {}
};

template <class Change>
std::string refused(Change&& change) {
  Folder const package(change);
  try {
    fr::StepManifest::open(package.path());
  } catch (fr::FormatError const& error) {
    CHECK(std::string(error.what()).find("manifest.json") != std::string::npos);
    return error.fault().why;
  }
  return "nothing";
}

TEST_CASE("a manifest is read whole") {
  Folder const package;
  fr::StepManifest const found = fr::StepManifest::open(package.path());
  CHECK(found.parameters.size() == 2);
  CHECK(found.parameters[0].strides == std::vector<std::int64_t>{3, 1});
  CHECK(found.programs.size() == 3);
  CHECK(found.programs[0].gradients == std::vector<std::size_t>{0, 1});
  CHECK(found.programs[0].buffers == std::vector<std::size_t>{0});
  CHECK(found.programs[0].weight);
  CHECK_FALSE(found.programs[0].output);
  CHECK(found.programs[2].fields.size() == 1);
  CHECK(found.programs[2].fields[0].shape[0].dimension == 0);
  CHECK(found.programs[2].fields[0].shape[1].size == 3);
}

TEST_CASE("its identity is that of what it computes, not of the machine code") {
  auto const identity = [](auto&& change) {
    return fr::StepManifest::open(Folder(change).path()).identity();
  };
  auto const plain = identity([](Json&) {});
  CHECK(plain == identity([](Json& all) { all["instructions"] = Json::array({"sse2", "avx"}); }));
  CHECK(plain != identity([](Json& all) { all["programs"][0]["graph"] = "other"; }));
  CHECK(plain != identity([](Json& all) { all["precision"] = "BF16"; }));
}

TEST_CASE("what does not fit is refused with its reason") {
  CHECK(refused([](Json&) {}) == "nothing");
  CHECK(refused([](Json& all) { all["device"] = "mps"; }).find("no device") != std::string::npos);
  CHECK(refused([](Json& all) { all.erase("torch"); }).find("torch") != std::string::npos);
  CHECK(refused([](Json& all) { all["more"] = 1; }).find("more") != std::string::npos);
  CHECK(refused([](Json& all) { all["parameters"][1]["name"] = "weight"; }).find("two tensors") !=
        std::string::npos);
  CHECK(refused([](Json& all) { all["parameters"][0]["stride"] = {1}; }).find("one stride") !=
        std::string::npos);
  CHECK(refused([](Json& all) { all["parameters"][0]["shape"] = {-1, 3}; }).find("not a size") !=
        std::string::npos);
  CHECK(refused([](Json& all) { all["parameters"][0]["trained"] = false; }).find("is not first") !=
        std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][0]["outputs"][3] = "gradient:nobody";
        }).find("nobody") != std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][0]["outputs"][3] = "gradient:bias";
        }).find("twice") != std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][0]["outputs"][0] = "weight";
        }).find("not in its place") != std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][2]["outputs"].push_back("index");
        }).find("of its kind") != std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][2]["indices"] = {{{"operator", "embedding"},
                                            {"fields", {"data"}},
                                            {"size", 3},
                                            {"negative", false},
                                            {"allowed", nullptr}}};
        }).find("of its kind") != std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][0]["indices"] = {{{"operator", "embedding"},
                                            {"fields", {"tokens"}},
                                            {"size", 3},
                                            {"negative", false},
                                            {"allowed", nullptr}}};
        }).find("tokens") != std::string::npos);
  CHECK(refused([](Json& all) { all["programs"][0]["kind"] = "evaluate"; }).find("of its kind") !=
        std::string::npos);
  CHECK(refused([](Json& all) { all["programs"].erase(0); }).find("no training step") !=
        std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][0]["fields"][0]["shape"][0] = "length";
        }).find("length") != std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][0]["dimensions"][0]["min"] = 2000;
        }).find("range") != std::string::npos);
  CHECK(refused([](Json& all) {
          all["programs"][0]["file"] = "../step-0.so";
        }).find("invalid name") != std::string::npos);
  CHECK(refused([](Json& all) {
          all["tied"] = Json::array({{{"name", "weight"}, {"of", "bias"}}});
        }).find("ties") != std::string::npos);
}

TEST_CASE("a manifest from the future, an edited and a truncated one") {
  CHECK_THROWS_AS(fr::StepManifest::open(Folder([](Json& all) { all["version"] = 2; }).path()),
                  fr::NewerFormatError);
  Folder const package;
  std::string const text = support::text_of(package / "manifest.json");
  auto const with = [&](std::string const& other) {
    std::ofstream(package / "manifest.json") << other;
    CHECK_THROWS_AS(fr::StepManifest::open(package.path()), fr::FormatError);
  };
  std::string edited = text;
  edited.replace(edited.find("1000"), 4, "2000");
  with(edited);
  for (std::size_t size = 0; size < text.size(); size += 37) with(text.substr(0, size));
  with("[]");
  with("{}");
}

TEST_CASE("a table of operators beside the code is one of the manifest") {
  Folder const package;
  std::ofstream(package / "step-0.json") << "{}";
  CHECK_THROWS_WITH_AS(fr::StepManifest::open(package.path()),
                       doctest::Contains("not in its manifest"), fr::FormatError);
  Json all = package.manifest;
  all["programs"][0]["table"] = package.of_file("step-0.json");
  package.write(all);
  CHECK(fr::StepManifest::open(package.path()).programs[0].table->bytes == 2);
  std::ofstream(package / "step-0.json") << "[]";
  CHECK_THROWS_WITH_AS(fr::StepManifest::open(package.path()),
                       doctest::Contains("its bytes were changed"), fr::FormatError);
}

TEST_CASE("files that are missing, cut or changed") {
  for (char const* name : {"step-0.so", "evaluate-0.so", "predict-0.so", "model.safetensors"}) {
    CAPTURE(name);
    {
      Folder const package;
      std::filesystem::remove(package / name);
      CHECK_THROWS_WITH_AS(fr::StepManifest::open(package.path()),
                           doctest::Contains("it is missing"), fr::FormatError);
    }
    {
      Folder const package;
      std::filesystem::resize_file(package / name, std::filesystem::file_size(package / name) - 1);
      CHECK_THROWS_WITH_AS(fr::StepManifest::open(package.path()),
                           doctest::Contains("bytes, and the manifest says"), fr::FormatError);
    }
    Folder const package;
    std::fstream file(package / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('\x7f').put('\x01');
    file.close();
    CHECK_THROWS_WITH_AS(fr::StepManifest::open(package.path()),
                         doctest::Contains("its bytes were changed"), fr::FormatError);
  }
  CHECK_THROWS_WITH_AS(fr::StepManifest::open("nowhere"),
                       doctest::Contains("there is no step package"), fr::FormatError);
}

}  // namespace frugal_test::step_manifest

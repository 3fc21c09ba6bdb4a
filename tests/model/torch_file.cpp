// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <frugal/model/load_weights.hpp>
#include <frugal/model/torch_file.hpp>

#include "support/checkpoints.hpp"
#include "support/files.hpp"
#include "support/reference.hpp"
#include "support/torch_files.hpp"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace frugal_test::model_torch_file {

using frugal::detail::StoredWeights;
using frugal::detail::TorchFile;
using namespace support;

std::vector<float> const six{0, 1, 2, 3, 4, 5};

void refuses(std::filesystem::path const& path, std::string const& why,
             std::string const& within = {}) {
  CAPTURE(why);
  CHECK_THROWS_WITH_AS(TorchFile::read(path, within), doctest::Contains(why.c_str()),
                       frugal::FormatError);
}

/// A state dict of one tensor.
auto one(std::vector<std::int32_t> const& sizes, std::vector<std::int32_t> const& strides,
         std::int32_t offset = 0) {
  return [=](Pickle& to) { to.text("w").tensor("0", "Float", 6, offset, sizes, strides); };
}

std::string bytes_of_hex(std::string const& hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

TEST_CASE(
    "files of Python's torch.save have the tensors of Python, and code is refused and not run") {
  TemporaryFolder const folder;
  std::map<std::string, char const*> const types{{"float32", "F32"},
                                                 {"float64", "F64"},
                                                 {"float16", "F16"},
                                                 {"bfloat16", "BF16"},
                                                 {"int64", "I64"},
                                                 {"int32", "I32"},
                                                 {"int16", "I16"},
                                                 {"int8", "I8"},
                                                 {"uint8", "U8"},
                                                 {"bool", "BOOL"},
                                                 {"uint16", "U16"},
                                                 {"uint32", "U32"},
                                                 {"uint64", "U64"},
                                                 {"complex64", "C64"},
                                                 {"float8_e4m3fn", "F8_E4M3"},
                                                 {"float8_e5m2", "F8_E5M2"},
                                                 {"complex128", "ComplexDouble"}};
  std::size_t tensors = 0, refused = 0;
  Json const all = reference("torch_files.json");
  for (Json const& each : all.at("cases")) {
    std::string const name = each.at("name");
    CAPTURE(name);
    write_text(folder / "w.pt", bytes_of_hex(each.at("file")));
    auto const open = [&] {
      return frugal::detail::open_weight_file(folder / "w.pt", each.value("within", ""));
    };
    if (each.contains("error")) {
      ++refused;
      std::string const error = each["error"];
      CHECK_THROWS_WITH_AS(open(), doctest::Contains(error.c_str()), frugal::FormatError);
      continue;
    }
    StoredWeights const weights = open();
    CHECK(weights.all().size() == each.at("tensors").size());
    for (auto const& [key, expected] : each.at("tensors").items()) {
      CAPTURE(key);
      auto const* const found = weights.find(key);
      REQUIRE(found != nullptr);
      CHECK(found->type_name == types.at(expected[0]));
      CHECK(found->sizes == shape_in(expected[1]));
      at::Tensor const tensor = found->tensor().contiguous();
      std::string const bytes(static_cast<char const*>(tensor.const_data_ptr()), tensor.nbytes());
      CHECK((bytes == bytes_of_hex(expected[2])));
      ++tensors;
    }
  }
  CHECK(tensors == 67);
  CHECK(refused == 8);
  CHECK_FALSE(std::filesystem::exists("pwned"));
}

TEST_CASE("tensors lie where the file lies, with their offsets and strides") {
  TemporaryFolder const folder;
  std::string const pickle = Pickle()
                                 .dict([](Pickle& to) {
                                   to.text("rows").tensor("0", "Float", 6, 0, {2, 3}, {3, 1});
                                   to.text("columns").tensor("0", "Float", 6, 0, {3, 2}, {1, 3});
                                   to.text("last").tensor("0", "Float", 6, 4, {2}, {1});
                                   to.text("alike").tensor("0", "Float", 6, 1, {2, 2}, {0, 1});
                                   to.text("none").tensor("1", "Float", 0, 0, {0, 3}, {3, 1});
                                   to.text("scalar").tensor("0", "Float", 6, 3, {}, {});
                                 })
                                 .done();
  write_torch_file(folder / "w.pt", pickle, {{"0", bytes_of_floats(six)}, {"1", ""}});
  StoredWeights const weights = TorchFile::read(folder / "w.pt", "");
  at::Tensor const all = at::arange(6, at::kFloat);
  REQUIRE(weights.all().size() == 6);
  CHECK(weights.find("rows")->tensor().equal(all.view({2, 3})));
  CHECK(weights.find("rows")->type_and_shape() == "F32 [2, 3]");
  CHECK(weights.find("columns")->tensor().equal(all.view({2, 3}).t()));
  CHECK(weights.find("last")->tensor().equal(at::tensor({4.0F, 5.0F})));
  CHECK(weights.find("alike")->tensor().equal(at::tensor({1.0F, 2.0F}).expand({2, 2})));
  CHECK(weights.find("none")->tensor().sizes() == at::IntArrayRef({0, 3}));
  CHECK(weights.find("scalar")->tensor().item<float>() == 3);
}

TEST_CASE("the state dict is found in the dict of a training program, or is named") {
  TemporaryFolder const folder;
  auto const write = [&](char const* name, std::vector<std::string> const& keys) {
    Pickle pickle;
    pickle.raw("}(").text("epoch").integer(3);
    for (std::string const& key : keys) pickle.text(key).dict(one({6}, {1}));
    write_torch_file(folder / name, pickle.raw("u").done(), {{"0", bytes_of_floats(six)}});
    return folder / name;
  };
  CHECK(TorchFile::read(write("one", {"state_dict"}), "").find("w") != nullptr);
  CHECK(TorchFile::read(write("other", {"ema"}), "ema").find("w") != nullptr);
  refuses(folder / "other", "its keys are 'epoch', 'ema'");
  refuses(folder / "other", "no state dict under 'model'", "model");
  refuses(write("two", {"state_dict", "model"}), "the file is not one state dict");
  CHECK(TorchFile::read(folder / "two", "model").find("w") != nullptr);
}

TEST_CASE("what is no tensor is refused by its name") {
  TemporaryFolder const folder;
  std::string const pickle =
      Pickle().raw("}(").text("sd").raw("}(").text("steps").integer(3).raw("uu").done();
  write_torch_file(folder / "w.pt", pickle, {});
  refuses(folder / "w.pt", "'steps' is no tensor", "sd");
}

TEST_CASE("a tensor that leaves its storage is refused, and so is a storage that is not there") {
  TemporaryFolder const folder;
  auto const write = [&](auto const& fill) {
    write_torch_file(folder / "w.pt", Pickle().dict(fill).done(), {{"0", bytes_of_floats(six)}});
    return folder / "w.pt";
  };
  CHECK(TorchFile::read(write(one({2, 3}, {3, 1})), "").all().size() == 1);
  refuses(write(one({2, 4}, {3, 1})), "'w' is F32 [2, 4], and its storage has 6 elements");
  refuses(write(one({2, 3}, {3, 1}, 1)), "its storage has 6 elements");
  refuses(write(one({2}, {1}, -1)), "its storage has 6 elements");
  refuses(write(one({1 << 30, 1 << 30, 1 << 30}, {1 << 30, 1 << 30, 1 << 30})), "6 elements");
  refuses(write(one({1 << 30, 1 << 30, 1 << 30}, {0, 0, 0})), "6 elements");
  refuses(write([](Pickle& to) { to.text("w").tensor("9", "Float", 6, 0, {6}, {1}); }),
          "it has no entry data/9");
  refuses(write([](Pickle& to) { to.text("w").tensor("0", "QInt8", 6, 0, {6}, {1}); }),
          "it names torch.QInt8Storage");
}

TEST_CASE("an archive that is damaged, compressed or cut is refused") {
  TemporaryFolder const folder;
  std::string const pickle = Pickle().dict(one({2, 3}, {3, 1})).done();
  auto const floats = bytes_of_floats(std::vector<float>(6, 1));
  write_torch_file(folder / "packed", pickle, {{"0", floats + std::string(4000, 'x')}}, true);
  refuses(folder / "packed", "data/0 is compressed");
  {
    caffe2::serialize::PyTorchStreamWriter writer((folder / "bomb").string());
    std::string const large = pickle + std::string(1 << 20, 'x');
    writer.writeRecord("data.pkl", large.data(), large.size(), true);
    writer.writeEndOfFile();
  }
  refuses(folder / "bomb", "data.pkl is compressed");
  write_torch_file(folder / "whole", pickle, {{"0", floats}});
  std::string const bytes = text_of(folder / "whole");
  for (std::size_t size : {bytes.size() - 1, bytes.size() / 2, std::size_t{30}}) {
    CAPTURE(size);
    write_text(folder / "cut", bytes.substr(0, size));
    refuses(folder / "cut", "the file is no state dict of torch.save, or is damaged");
  }
}

TEST_CASE("no bit of an archive that is flipped reads outside of it") {
  TemporaryFolder const folder;
  std::string const pickle = Pickle().dict(one({2, 3}, {3, 1})).done();
  write_torch_file(folder / "whole", pickle, {{"0", bytes_of_floats(six)}});
  std::string const bytes = text_of(folder / "whole");
  std::size_t read = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x41);
    write_text(folder / "changed", changed);
    try {
      StoredWeights const weights = TorchFile::read(folder / "changed", "");
      for (auto const& each : weights.all()) static_cast<void>(each.tensor().sum().item<float>());
      ++read;
    } catch (frugal::Error const&) {
    }
  }
  CHECK(read > 0);  // padding, checksums and the numbers themselves
}

TEST_CASE("a tensor that is stored before it is conjugated or negated is refused by its name") {
  TemporaryFolder const folder;
  auto const file = [&](std::string const& bits) {
    Pickle pickle;
    pickle.dict([&](Pickle& to) {
      to.text("w").global("torch._utils", "_rebuild_tensor_v2").raw("((").text("storage");
      to.global("torch", "FloatStorage").text("0").text("cpu").integer(6).raw("tQ");
      to.integer(0).integers({6}).integers({1}).raw("\x89");
      // torch._utils.get_tensor_metadata: a dict of the bits that are set.
      to.global("collections", "OrderedDict").raw(")R}(").raw(bits).raw("utR");
    });
    write_torch_file(folder / "w", pickle.done(), {{"0", bytes_of_floats(six)}});
    return folder / "w";
  };
  auto const bit = [](std::string const& name, bool set) {
    std::string text = "X";
    text += {static_cast<char>(name.size()), '\0', '\0', '\0'};
    return text + name + (set ? "\x88" : "\x89");
  };
  refuses(file(bit("neg", true)), "'w' has the bit 'neg'");
  refuses(file(bit("neg", false) + bit("conj", true)), "'w' has the bit 'conj'");
  CHECK(TorchFile::read(file(bit("conj", false)), "").find("w") != nullptr);
}

}  // namespace frugal_test::model_torch_file

// SPDX-License-Identifier: Apache-2.0
// What encoder.py asks of models::Bert: reads a model's weights, and a file with
// `ids` and `mask`, and writes the `embedding` of each text.
#include <frugal/base/file.hpp>
#include <frugal/checkpoint/safetensors.hpp>
#include <frugal/checkpoint/safetensors_writer.hpp>
#include <frugal/model/load_weights.hpp>
#include <frugal/models/bert.hpp>
#include <frugal/policy/checkpoint/weights.hpp>

#include <ATen/Parallel.h>

#include <exception>
#include <iostream>
#include <string>

int main(int count, char** arguments) try {
  if (count != 4) {
    std::cerr << "usage: interop_encoder MODEL.safetensors TEXTS.safetensors OUT.safetensors\n";
    return 2;
  }
  at::set_num_threads(1);
  frugal::models::Bert encoder(
      frugal::models::BertOptions{.width = 384, .layers = 6, .heads = 12, .intermediate = 1536});
  std::cout << frugal::load_weights(encoder, arguments[1], {.allow_unexpected = {"*position_ids"}})
            << '\n';
  encoder->eval();
  auto const texts = frugal::Safetensors::open(arguments[2]);
  auto const tensor = [&](char const* name) {
    return frugal::detail::tensor_in_file(texts.find(name).value());
  };
  at::NoGradGuard const no_gradients;
  at::Tensor const embedding_BW =
      frugal::models::sentence_embedding(encoder(tensor("ids"), tensor("mask")), tensor("mask"))
          .contiguous();
  frugal::SafetensorsWriter const writer({frugal::detail::stored_view("embedding", embedding_BW)},
                                         {}, arguments[3]);
  auto file = frugal::File::create(arguments[3]);
  writer.write(file);
  file.close();
} catch (std::exception const& error) {
  std::cerr << error.what() << '\n';
  return 1;
}

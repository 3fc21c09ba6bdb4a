// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <frugal/cluster/grid.hpp>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/error.hpp>
#include <frugal/inline.hpp>

#include <utility>
#include <vector>

namespace frugal {

FRUGAL_INLINE Grid Grid::of(std::shared_ptr<Communicator> everyone, GridShape shape) {
  shape = fitted(shape, everyone->world());
  if (everyone->size() > 1) {
    detail::require_same_run(*everyone, {{"the grid (data x tensor x stages)", text_of(shape)}});
  }
  int const rank = everyone->rank(), each = shape.tensor * shape.stages;
  std::vector<int> data, own, alone{rank};
  for (int i = 0; i < shape.data; ++i) data.push_back(i * each + rank % each);
  for (int i = 0; i < each; ++i) own.push_back(rank / each * each + i);
  std::string const copy = std::to_string(rank / each), place = std::to_string(rank % each);
  Grid grid{.shape = shape};
  // Stages have different numbers of tensors to exchange.
  grid.data = everyone->group(data, "data/" + place, /*counts=*/shape.stages == 1);
  // A process with fewer micro-batches than the others makes fewer exchanges of these.
  grid.tensor = everyone->group(shape.tensor > 1 ? own : alone, "tensor/" + copy, /*counts=*/false);
  grid.stages = everyone->group(shape.stages > 1 ? own : alone, "stages/" + copy, /*counts=*/false);
  grid.data->belongs_to(everyone, grid.tensor);
  grid.tensor->belongs_to(everyone, nullptr);
  grid.stages->belongs_to(everyone, nullptr);
  grid.everyone = std::move(everyone);
  return grid;
}

FRUGAL_INLINE std::string Grid::text() const {
  auto const place = [](Communicator const& dimension) {
    return std::to_string(dimension.rank()) + " of " + std::to_string(dimension.size());
  };
  return "rank " + place(*everyone) + ": data " + place(*data) +
         (shape.stages > 1 ? ", stage " + place(*stages) : ", tensor " + place(*tensor));
}

FRUGAL_INLINE GridShape Grid::fitted(GridShape shape, World const& world) {
  auto const refuse = [&](std::string what, std::string why, std::string fix) {
    throw SettingsError({.what = std::move(what),
                         .where = "Grid, " + world.text(),
                         .why = std::move(why),
                         .fix = std::move(fix)});
  };
  std::string const processes = std::to_string(world.size) + " processes";
  if (shape.tensor < 1 || shape.stages < 1 || shape.data < 0) {
    refuse("a grid of " + text_of(shape) + " processes", "each dimension has one process or more",
           "Set GridShape::tensor and GridShape::stages to 1 or more, and GridShape::data to 0 for "
           "as many as there are.");
  }
  if (shape.tensor > 1 && shape.stages > 1) {
    refuse("a grid of " + text_of(shape) + " processes",
           "Pipeline divides layers that are whole, and a tensor dimension cuts them",
           "Set GridShape::tensor or GridShape::stages to 1.");
  }
  std::string const member = shape.stages > 1 ? "GridShape::stages" : "GridShape::tensor";
  int const each = shape.tensor * shape.stages;
  if (world.size % each != 0) {
    refuse(processes + " cannot be cut into groups of " + std::to_string(each),
           "each copy of the module takes " + member + " processes",
           "Start a multiple of " + std::to_string(each) + " processes, or set " + member +
               " to a divisor of " + std::to_string(world.size) + ".");
  }
  int const data = world.size / each;
  if (shape.data != 0 && shape.data != data) {
    std::string const product = std::to_string(shape.data * each);
    refuse("a grid of " + text_of(shape) + " and a world of " + processes,
           text_of(shape) + " is " + product,
           "Leave GridShape::data out, or start " + product + " processes.");
  }
  shape.data = data;
  return shape;
}

}  // namespace frugal

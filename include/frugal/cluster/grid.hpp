// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <frugal/cluster/agreement/same_run.hpp>
#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>
#include <frugal/error.hpp>

namespace frugal {

/// How many processes a Grid has in each dimension.
struct GridShape {
  int data = 0;    ///< copies of the module, which share the micro-batches; 0: as many as there are
  int tensor = 1;  ///< processes that hold shards of each layer of one copy
  int stages = 1;  ///< processes that hold the layers of one copy (Pipeline), without shards
};

/// The processes of a run in two dimensions: data x tensor, or data x stages. Rank = data rank * tensor +
/// tensor rank, or data rank * stages + stage, so that the processes that hold one copy of a module are
/// neighbours, on one machine if the launcher numbers ranks by machine: they exchange activations.
///
///     fr::Grid const grid = fr::Grid::join(fr::World::from_environment(), {.tensor = 2});
///     fr::ColumnLinear layer(512, 2048, grid.tensor);
///     fr::Replicate<fr::Exact>{.with = grid.data}
///
///     fr::Grid const grid = fr::Grid::join(fr::World::from_environment(), {.stages = 4});
///     fr::Pipeline<fr::OneForwardOneBackward, fr::Exact>{.with = grid.stages, .copies = grid.data}
///
/// All dimensions have one store and one watch: errors name ranks of the whole world.
///
/// Errors  SettingsError for sizes that do not multiply to the world's; ClusterError for ranks that ask
///         for other sizes, and those of Communicator.
struct Grid {
  GridShape shape{};
  std::shared_ptr<Communicator> everyone{};  ///< all processes
  std::shared_ptr<Communicator> data{};      ///< those with the same shards of the module
  std::shared_ptr<Communicator> tensor{};    ///< those with the other shards of the same copy
  std::shared_ptr<Communicator> stages{};    ///< those with the other stages of the same copy

  /// Waits until all processes have come.
  static Grid join(World const& world, GridShape shape, WaitLimits const& limits = {},
                   Transport transport = Transport::fastest) {
    shape = fitted(shape, world);  // before the others are waited for
    return of(Communicator::join(world, limits, transport), shape);
  }

  /// Over processes that have met; all call it.
  static Grid of(std::shared_ptr<Communicator> everyone, GridShape shape) {
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
    grid.tensor =
        everyone->group(shape.tensor > 1 ? own : alone, "tensor/" + copy, /*counts=*/false);
    grid.stages =
        everyone->group(shape.stages > 1 ? own : alone, "stages/" + copy, /*counts=*/false);
    grid.data->belongs_to(everyone, grid.tensor);
    grid.tensor->belongs_to(everyone, nullptr);
    grid.stages->belongs_to(everyone, nullptr);
    grid.everyone = std::move(everyone);
    return grid;
  }

  /// "rank 5 of 8: data 2 of 4, tensor 1 of 2".
  std::string text() const {
    auto const place = [](Communicator const& dimension) {
      return std::to_string(dimension.rank()) + " of " + std::to_string(dimension.size());
    };
    return "rank " + place(*everyone) + ": data " + place(*data) +
           (shape.stages > 1 ? ", stage " + place(*stages) : ", tensor " + place(*tensor));
  }

 private:
  static std::string text_of(GridShape const& shape) {
    std::string const stages = shape.stages == 1 ? "" : " x " + std::to_string(shape.stages);
    return std::to_string(shape.data) + " x " + std::to_string(shape.tensor) + stages;
  }

  static GridShape fitted(GridShape shape, World const& world) {
    auto const refuse = [&](std::string what, std::string why, std::string fix) {
      throw SettingsError({.what = std::move(what),
                           .where = "Grid, " + world.text(),
                           .why = std::move(why),
                           .fix = std::move(fix)});
    };
    std::string const processes = std::to_string(world.size) + " processes";
    if (shape.tensor < 1 || shape.stages < 1 || shape.data < 0) {
      refuse(
          "a grid of " + text_of(shape) + " processes", "each dimension has one process or more",
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
};

}  // namespace frugal

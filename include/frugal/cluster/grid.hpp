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
  int tensor = 1;  ///< processes that hold one copy of the module together
};

/// The processes of a run in two dimensions: data x tensor. Rank = data rank * tensor + tensor rank,
/// so that the processes that hold one copy of a module are neighbours, on one machine if the launcher
/// numbers ranks by machine: they exchange activations several times a layer.
///
///     fr::Grid const grid = fr::Grid::join(fr::World::from_environment(), {.tensor = 2});
///     fr::ColumnLinear layer(512, 2048, grid.tensor);
///     fr::Replicate<fr::Exact>{.with = grid.data}
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
      detail::require_same_run(*everyone, {{"the grid (data x tensor)", text_of(shape)}});
    }
    int const rank = everyone->rank();
    std::vector<int> data, tensor;
    for (int i = 0; i < shape.data; ++i) data.push_back(i * shape.tensor + rank % shape.tensor);
    for (int i = 0; i < shape.tensor; ++i) {
      tensor.push_back(rank / shape.tensor * shape.tensor + i);
    }
    Grid grid{.shape = shape};
    grid.data = everyone->group(data, "data/" + std::to_string(rank % shape.tensor));
    // A process with fewer micro-batches than the others makes fewer exchanges of these.
    grid.tensor = everyone->group(tensor, "tensor/" + std::to_string(rank / shape.tensor),
                                  /*counts=*/false);
    grid.data->belongs_to(everyone, grid.tensor);
    grid.everyone = std::move(everyone);
    return grid;
  }

  /// "rank 5 of 8: data 2 of 4, tensor 1 of 2".
  std::string text() const {
    auto const place = [](Communicator const& dimension) {
      return std::to_string(dimension.rank()) + " of " + std::to_string(dimension.size());
    };
    return "rank " + place(*everyone) + ": data " + place(*data) + ", tensor " + place(*tensor);
  }

 private:
  static std::string text_of(GridShape const& shape) {
    return std::to_string(shape.data) + " x " + std::to_string(shape.tensor);
  }

  static GridShape fitted(GridShape shape, World const& world) {
    auto const refuse = [&](std::string what, std::string why, std::string fix) {
      throw SettingsError({.what = std::move(what),
                           .where = "Grid, " + world.text(),
                           .why = std::move(why),
                           .fix = std::move(fix)});
    };
    std::string const processes = std::to_string(world.size) + " processes";
    if (shape.tensor < 1 || shape.data < 0) {
      refuse(
          "a grid of " + text_of(shape) + " processes", "each dimension has one process or more",
          "Set GridShape::tensor to 1 or more, and GridShape::data to 0 for as many as there are.");
    }
    if (world.size % shape.tensor != 0) {
      refuse(processes + " cannot be cut into groups of " + std::to_string(shape.tensor),
             "each copy of the module takes GridShape::tensor processes",
             "Start a multiple of " + std::to_string(shape.tensor) +
                 " processes, or set GridShape::tensor to a divisor of " +
                 std::to_string(world.size) + ".");
    }
    int const data = world.size / shape.tensor;
    if (shape.data != 0 && shape.data != data) {
      refuse("a grid of " + text_of(shape) + " and a world of " + processes,
             text_of(shape) + " is " + std::to_string(shape.data * shape.tensor),
             "Leave GridShape::data out, or start " + std::to_string(shape.data * shape.tensor) +
                 " processes.");
    }
    shape.data = data;
    return shape;
  }
};

}  // namespace frugal

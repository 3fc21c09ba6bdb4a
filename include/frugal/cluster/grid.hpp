// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <frugal/cluster/communicator.hpp>
#include <frugal/cluster/communicator/rendezvous.hpp>
#include <frugal/cluster/world.hpp>

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
  static Grid of(std::shared_ptr<Communicator> everyone, GridShape shape);

  /// "rank 5 of 8: data 2 of 4, tensor 1 of 2".
  std::string text() const;

 private:
  static std::string text_of(GridShape const& shape) {
    std::string const stages = shape.stages == 1 ? "" : " x " + std::to_string(shape.stages);
    return std::to_string(shape.data) + " x " + std::to_string(shape.tensor) + stages;
  }

  static GridShape fitted(GridShape shape, World const& world);
};

}  // namespace frugal

#ifndef FRUGAL_COMPILED
#include <frugal/cluster/grid.ipp>
#endif

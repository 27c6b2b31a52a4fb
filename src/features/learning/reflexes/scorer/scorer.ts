/** Points of each decision of a scope for one event. A unit is the same in all parts. */
export type Scorer = {
  /** Points of each class before anything is seen: integers. */
  bias: readonly number[]
  /** By the hash of a piece: points for classes, each -127 to 127. */
  pieces: ReadonlyMap<number, readonly PiecePoints[]>
}
export type PiecePoints = readonly [own: number, points: number]

/** A class, and by how many points it is ahead of the second. */
export type Lead = { own: number; margin: number }

/** Integers: the sandbox adds the same ones, and the order of a sum does not matter. */
export function pointsOf({ bias, pieces }: Scorer, seen: { pieces: Uint32Array }): Int32Array {
  const points = Int32Array.from(bias)
  for (const piece of seen.pieces) {
    for (const [own, more] of pieces.get(piece) ?? []) points[own] = (points[own] ?? 0) + more
  }
  return points
}

/** The first of the classes with the most points. Two that are level are ahead by 0. */
export function leadOf(points: Int32Array): Lead {
  let own = -1
  let first = -Infinity
  let second = -Infinity
  for (let at = 0; at < points.length; at += 1) {
    const more = points[at]!
    if (more > first) {
      second = first
      first = more
      own = at
    } else if (more > second) second = more
  }
  return { own, margin: first - second }
}

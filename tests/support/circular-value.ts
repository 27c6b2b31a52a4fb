/** A value that holds itself: no JSON. */
export const circle: unknown[] = []
circle.push(circle)

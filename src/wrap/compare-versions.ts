/** The order of semantic versions, by their specification's rules; what is behind a `+` does not count. */
export function compareVersions(left: string, right: string): number {
  const [leftCore, leftRest] = partsOf(left)
  const [rightCore, rightRest] = partsOf(right)
  const byCore = compareLists(leftCore, rightCore)
  if (byCore !== 0) return byCore
  // A version with a label comes before the one that it leads to.
  if (leftRest.length === 0 || rightRest.length === 0) return Math.sign(rightRest.length - leftRest.length)
  return compareLists(leftRest, rightRest)
}

function partsOf(version: string): [string[], string[]] {
  const [released = ''] = version.split('+', 1)
  const [core = '', ...rest] = released.split('-')
  return [core.split('.'), rest.length === 0 ? [] : rest.join('-').split('.')]
}

function compareLists(left: readonly string[], right: readonly string[]): number {
  for (const [index, part] of left.entries()) {
    const other = right[index]
    if (other === undefined) return 1
    const order = compareParts(part, other)
    if (order !== 0) return order
  }
  return Math.sign(left.length - right.length)
}

function compareParts(left: string, right: string): number {
  const numbers = /^\d+$/
  if (numbers.test(left) && numbers.test(right)) return Math.sign(left.length - right.length) || compareText(left, right)
  if (numbers.test(left) !== numbers.test(right)) return numbers.test(left) ? -1 : 1
  return compareText(left, right)
}

const compareText = (left: string, right: string): number => (left < right ? -1 : Number(left > right))

const VERSION = /^(\d+)\.(\d+)\.(\d+)(?:-([^+]+))?(?:\+.+)?$/

/**
 * A key that sorts as semantic versions rank: 1.9.0 before 1.10.0, 1.0.0-rc.1 before 1.0.0. Build
 * metadata keeps keys distinct.
 */
export function precedenceOf(version: string): string {
  const [, major, minor, patch, prerelease] = VERSION.exec(version) ?? []
  if (major === undefined || minor === undefined || patch === undefined) throw new RangeError(`${version} is not a semantic version`)
  const rank = prerelease === undefined ? RELEASE : `-${prerelease.split('.').map(identifier).join('!')}`
  return `${[major, minor, patch].map(number).join('')}${rank} ${version}`
}

export function compareVersions(left: string, right: string): number {
  const one = precedenceOf(left)
  const other = precedenceOf(right)
  return one < other ? -1 : Number(one > other)
}

/** Sorts above the `-` of a prerelease. */
const RELEASE = '~'

/** Numbers rank below words. */
const identifier = (text: string): string => (/^\d+$/.test(text) ? `0${number(text)}` : `1${text}`)

/** Prefixes the number of digits, so that longer numbers sort higher. */
function number(digits: string): string {
  const plain = digits.replace(/^0+(?=\d)/, '')
  return `${String(plain.length).padStart(2, '0')}${plain}`
}

import { styleText } from 'node:util'
import type { Colour } from '../../src/contract/shown.ts'

export type { Colour }
export type Paint = (colour: Colour, text: string) => string
export type Terminal = { isTTY?: boolean; columns?: number; rows?: number; write: (text: string) => unknown }

export const plainPaint: Paint = (_, text) => text

/** An output that a picture can be redrawn on. */
export const isTerminal = ({ isTTY }: Terminal, env: NodeJS.ProcessEnv = process.env): boolean => isTTY === true && env['TERM'] !== 'dumb'

/** Uses colour on a terminal only, and not if NO_COLOR is set (no-color.org). */
export function painter(output: Terminal, env: NodeJS.ProcessEnv = process.env): Paint {
  if (!isTerminal(output, env) || env['NO_COLOR']) return plainPaint
  return (colour, text) => styleText(colour, text, { validateStream: false })
}

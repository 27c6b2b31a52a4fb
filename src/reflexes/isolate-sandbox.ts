import wasm from './engine/sandbox.wasm'
import { QuickJsSandbox } from './quickjs-sandbox.ts'

let shared: QuickJsSandbox | null = null

/**
 * One for all scopes of this isolate: no run leaves a trace in it, and a program that many scopes
 * use is compiled once.
 */
export function isolateSandbox(): QuickJsSandbox {
  shared ??= new QuickJsSandbox(wasm)
  return shared
}

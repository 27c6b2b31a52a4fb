import wasm from './engine/sandbox.wasm'
import { QuickJsSandbox } from './quickjs-sandbox.ts'

let shared: QuickJsSandbox | null = null

/** Shared by all scopes of an isolate: runs leave no trace, and programs are compiled once. */
export function isolateSandbox(): QuickJsSandbox {
  shared ??= new QuickJsSandbox(wasm)
  return shared
}

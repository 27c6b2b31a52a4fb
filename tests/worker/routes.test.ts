import { exports } from 'cloudflare:workers'
import { expect, test } from 'vitest'

const call = (path: string, init: RequestInit = {}, key = 'test-admin-key') =>
  exports.default.fetch(new Request(`https://reflex.test${path}`, { ...init, headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...(init.headers as Record<string,string>) } }))
const show = async (r: Response) => console.log(r.status, (await r.text()).slice(0, 600))
test('smoke', async () => {
  await show(await call('/health'))
  await show(await call('/health/ready'))
  await show(await call('/health/detailed'))
  console.log('PAGE:' + btoa(unescape(encodeURIComponent(await (await call('/v1/docs')).text()))))
  console.log('DOC:' + await (await call('/v1/openapi.json')).text())
})

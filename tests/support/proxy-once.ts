/**
 * For each new object, the test pool wraps the prototype of its class in one more proxy, so that
 * every call reads through as many proxies as there were objects before: nine tenths of the time
 * of these tests. Here it gets the proxy that it already has. Later releases of the pool do the same.
 */
const wrapped = new WeakSet()

globalThis.Proxy = new Proxy(Proxy, {
  construct(target, [object, handler]: [object, ProxyHandler<object>]) {
    if (wrapped.has(object)) return object
    const proxy = new target(object, handler)
    if (String(Reflect.get(handler, 'get')).includes('getUnknownPrototypeKey')) wrapped.add(proxy)
    return proxy
  },
})

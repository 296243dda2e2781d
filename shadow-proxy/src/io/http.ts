/** HTTP: the admin's server, and requests to other proxies and to receivers of notifications. */
import type { RequestListener, ServerOptions } from 'node:http';
import { world, type HttpServer } from './world.js';

export type { HttpServer };

export const createHttpServer = (options: ServerOptions, answer: RequestListener): HttpServer =>
  world.createHttpServer(options, answer);

export const request = (url: string, options: RequestInit): Promise<Response> => world.fetch(url, options);

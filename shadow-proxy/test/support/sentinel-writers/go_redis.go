// A go-redis client that knows only Sentinels: MASTER HOST:PORT... Prints `count key` for each pair of writes that was
// acknowledged, until its standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

func main() {
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: os.Args[1], SentinelAddrs: os.Args[2:]})
	ended := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	ctx := context.Background()
	for n := 1; ; n++ {
		select {
		case <-ended:
			return
		case <-time.After(2 * time.Millisecond):
		}
		key := fmt.Sprintf("go-redis:%d", n)
		count, err := client.Incr(ctx, "count:go-redis").Result()
		if err == nil {
			err = client.Set(ctx, key, key, 0).Err()
		}
		if err == nil {
			fmt.Println(count, key)
		}
	}
}
